"""Base classes of all admin screens: owners see only their own workspaces' rows, and no page counts a whole table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import ForeignKey, Model, QuerySet
from django.db.models.options import Options
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from volcanic.selectors import workspaces_of

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:  # the theme is untyped; its classes extend Django's classes
    ThemeAdmin = admin.ModelAdmin[Any]
    ThemePaginator = Paginator[Any]
    RelatedFilter = admin.RelatedFieldListFilter

    def display(
        *,
        description: str,
        ordering: str | None = None,
        label: Mapping[str, str | None] | None = None,
        empty_value: str | None = None,
    ) -> Callable[[F], F]:
        """Describes a column or field that a method computes. `label` maps the first value of a pair to a color."""
        ...

else:
    from unfold.admin import ModelAdmin as ThemeAdmin
    from unfold.contrib.filters.admin import RelatedDropdownFilter as RelatedFilter
    from unfold.decorators import display as display

    ThemePaginator = Paginator

# A list offers this many rows for paging. Older rows are found by search and filters.
LISTED_ROWS = 1000
CHOICES = 500


def is_superuser(request: HttpRequest) -> bool:
    """Returns whether the visitor is an active superuser, who administers the whole installation."""
    return bool(request.user.is_active and request.user.is_staff and request.user.is_superuser)


def is_owner(request: HttpRequest) -> bool:
    """Returns whether the visitor may use the owner's screens: staff who own a workspace, and superusers.

    Ownership of a workspace replaces Django's permissions. The database is asked once for each request.
    """
    known: bool | None = getattr(request, "_volcanic_is_owner", None)
    if known is None:
        user = request.user
        known = user.is_active and user.is_staff and (user.is_superuser or workspaces_of(user).exists())
        request._volcanic_is_owner = known  # type: ignore[attr-defined]
    return known


def moment(time: datetime | None) -> str:
    """Returns a time in the local time zone as `2026-01-31 09:30`, short enough for a column; "" for None."""
    return "" if time is None else date_format(timezone.localtime(time), "Y-m-d H:i")


def said(text: str) -> str:
    """Returns a text as HTML for a field of a form, escaped and with its line breaks. A caller may have written it."""
    return format_html('<div class="volcanic-text volcanic-said" dir="auto">{}</div>', text)


def task_url(task: Any) -> str:
    """Returns the URL of a task's page; "" where no such page is registered, since another package has the tasks."""
    try:
        return reverse("admin:a2a_server_task_change", args=[task])
    except NoReverseMatch:
        return ""


class CappedPaginator(ThemePaginator):
    """A paginator that reads at most LISTED_ROWS + 1 primary keys instead of counting a whole table."""

    template_name = "admin/pagination_capped.html"

    @cached_property
    def _seen(self) -> int:
        rows = cast("QuerySet[Any]", self.object_list)
        return len(rows.order_by().values_list("pk")[: LISTED_ROWS + 1])

    @cached_property
    def count(self) -> int:
        """Number of rows that can be paged through."""
        return min(self._seen, LISTED_ROWS)

    @property
    def capped(self) -> bool:
        """Whether the table has more rows than can be paged through."""
        return self._seen > LISTED_ROWS


class OwnRelatedFilter(RelatedFilter):
    """A filter by a related row that offers only the visitor's own rows."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: ThemeAdmin) -> Any:
        """Returns the first CHOICES rows that the related model's own screen would list."""
        related = model_admin.admin_site.get_model_admin(field.remote_field.model)
        rows = related.get_queryset(request).order_by(*related.get_ordering(request))[:CHOICES]
        return [(str(row.pk), str(row)) for row in rows]


class BaseAdmin(ThemeAdmin):
    """A screen without full counts, with 404 for unknown rows and with panels around the form."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    # Large columns that a list does not show.
    list_defer: ClassVar[Sequence[str]] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Returns the theme's list class, changed to leave out the columns of `list_defer`."""
        theme: type[ChangeList] = super().get_changelist(request, **kwargs)
        deferred = self.list_defer

        class LeanChangeList(theme):  # type: ignore[misc,valid-type]
            def get_queryset(self, *args: Any, **kwargs: Any) -> QuerySet[Any]:
                rows: QuerySet[Any] = super().get_queryset(*args, **kwargs)
                return rows.defer(*deferred)

        return LeanChangeList

    def panels(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Returns additional context for the templates around the form of `obj`."""
        return {}

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Adds the panels of an existing row to the page."""
        if obj is not None:
            context |= self.panels(request, obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Options[Any], object_id: str) -> NoReturn:
        raise Http404  # Django would redirect. A visitor can't tell another owner's row from a missing row.

    def post_path(self, route: str, name: str, view: Callable[..., HttpResponse]) -> URLPattern:
        """Returns a URL path below a row that takes only POST, CSRF-checked, and calls `view(request, obj, …)`.

        The visitor needs the permission to view the row. `view` itself checks any other condition.
        """

        def handle(request: HttpRequest, object_id: str, **kwargs: Any) -> HttpResponse:
            if not self.has_view_permission(request):
                raise PermissionDenied
            obj = self.get_object(request, unquote(object_id))
            if obj is None:
                raise Http404
            return view(request, obj, **kwargs)

        label = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        return path(f"<path:object_id>/{route}/", self.admin_site.admin_view(require_POST(handle)), name=label)


class OwnedAdmin(BaseAdmin):
    """A screen of rows that belong to a workspace. `owner_lookup` is the lookup from a row to the workspace's owner."""

    owner_lookup: ClassVar[str]
    can_add: ClassVar[bool] = False
    can_change: ClassVar[bool] = False
    can_delete: ClassVar[bool] = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the visitor's own rows. Lists, pages, actions, choices and direct URLs all read rows from here."""
        rows = super().get_queryset(request)
        return rows if is_superuser(request) else rows.filter(**{self.owner_lookup: request.user.pk})

    def formfield_for_foreignkey(self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Returns a field that offers only the visitor's own rows."""
        related: type[Model] = db_field.remote_field.model
        if "queryset" not in kwargs and self.admin_site.is_registered(related):
            kwargs["queryset"] = self.admin_site.get_model_admin(related).get_queryset(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def change_each(self, request: HttpRequest, rows: QuerySet[Any], word: str, change: Callable[[Any], bool]) -> None:
        """Calls `change` for each row, logs each changed row, and shows the number of changed rows.

        `change` returns whether it changed the row. `word` describes the change in the log and in the message.
        """
        done = 0
        for row in rows:
            if change(row):
                self.log_change(request, row, f"{word}.")
                done += 1
        messages.success(request, f"{word}: {done}.")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Owners see the screens without Django's permissions."""
        return is_owner(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Owners may view; get_queryset limits the rows."""
        return is_owner(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Owners may add rows if the screen has `can_add`."""
        return self.can_add and is_owner(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Owners may change rows if the screen has `can_change`."""
        return self.can_change and is_owner(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Owners may delete rows if the screen has `can_delete`."""
        return self.can_delete and is_owner(request)


class SuperuserAdmin(BaseAdmin):
    """A screen of the whole installation, for superusers only. Django's permissions of other users do not count."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only."""
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers only."""
        return is_superuser(request)
