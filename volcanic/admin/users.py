"""Who may log in, and who was kept from it: superusers only."""

from copy import copy
from typing import TYPE_CHECKING, Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from volcanic.admin.base import SuperuserAdmin
from volcanic.admin.forms import ShownForm
from volcanic.models import Workspace

if TYPE_CHECKING:
    UserScreen = UserAdmin[User]
else:
    UserScreen = UserAdmin

# By their own packages, without the theme and for whoever has permissions. Groups play no part here and have no screen.
for model in (User, Group, AccessAttempt, AccessLog, AccessFailureLog):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class OwnUserForm(ShownForm, UserChangeForm):  # type: ignore[misc]
    """A user as they are."""


@admin.register(User)
class OwnUserAdmin(SuperuserAdmin, UserScreen):
    """People. An owner is a staff user with a workspace; permissions and groups play no part and are not shown."""

    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who it is", {"fields": ("first_name", "last_name", "email")}),
        ("What they may do", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    # The theme's own, which is empty, comes before Django's.
    add_fieldsets = UserAdmin.add_fieldsets
    filter_horizontal = ()
    form = OwnUserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    readonly_fields = ("last_login", "date_joined")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An owner's account goes when the workspace has another owner: it would take all its rows with it."""
        if obj is not None and Workspace.objects.filter(owner=obj).exists():
            return False
        return super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Refuses owners before Django looks up every row below their workspaces."""
        owned = Workspace.objects.filter(owner__in=[user.pk for user in objs])
        if owned.exists():
            return [], {}, set(), [f"workspace {slug}" for slug in owned.values_list("slug", flat=True)]
        deleted: tuple[list[Any], dict[str, int], set[str], list[Any]] = super().get_deleted_objects(objs, request)
        return deleted


@admin.register(AccessAttempt)
class LoginAttemptAdmin(SuperuserAdmin):
    """Failed logins that count. Deleting one lets its name and address try again at once."""

    list_display = ("attempt_time", "username", "ip_address", "failures_since_start")
    list_filter = ("attempt_time",)
    search_fields = ("username", "ip_address")
    fields = ("attempt_time", "username", "ip_address", "user_agent", "path_info", "failures_since_start")
    ordering = ("-attempt_time",)

    def __init__(self, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)
        # What the menu calls them. On a copy: the model is another package's, whose migrations know its own names.
        self.opts = copy(self.opts)
        self.opts.verbose_name, self.opts.verbose_name_plural = "failed login", "failed logins"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Returns the list, under that name."""
        listed = super().get_changelist_instance(request)
        listed.opts = self.opts
        return listed

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Attempts are made, not added."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """They are what they are."""
        return False
