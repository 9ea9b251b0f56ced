"""Admin screens of users and failed logins, for superusers only."""

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

# The packages of these models register screens without the theme and open to other users with Django's permissions.
# Groups have no effect in this product and get no screen.
for model in (User, Group, AccessAttempt, AccessLog, AccessFailureLog):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class OwnUserForm(ShownForm, UserChangeForm):  # type: ignore[misc]
    """The form of an existing user."""


@admin.register(User)
class OwnUserAdmin(SuperuserAdmin, UserScreen):
    """Users. An owner is a staff user with a workspace. Permissions and groups have no effect and are not shown."""

    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    # The theme's base class would set empty fieldsets.
    add_fieldsets = UserAdmin.add_fieldsets
    filter_horizontal = ()
    form = OwnUserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    readonly_fields = ("last_login", "date_joined")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An owner can be deleted only after the workspace got another owner, since its rows would be deleted too."""
        if obj is not None and Workspace.objects.filter(owner=obj).exists():
            return False
        return super().has_delete_permission(request, obj)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Protects owners from deletion before Django looks up every row below their workspaces."""
        owned = Workspace.objects.filter(owner__in=[user.pk for user in objs])
        if owned.exists():
            return [], {}, set(), [f"workspace {slug}" for slug in owned.values_list("slug", flat=True)]
        deleted: tuple[list[Any], dict[str, int], set[str], list[Any]] = super().get_deleted_objects(objs, request)
        return deleted


@admin.register(AccessAttempt)
class LoginAttemptAdmin(SuperuserAdmin):
    """Failed logins. Deleting one lets that user name and address log in again at once."""

    list_display = ("attempt_time", "username", "ip_address", "failures_since_start")
    list_filter = ("attempt_time",)
    search_fields = ("username", "ip_address")
    fields = ("attempt_time", "username", "ip_address", "user_agent", "path_info", "failures_since_start")
    ordering = ("-attempt_time",)

    def __init__(self, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)
        # The names in the menu. They are set on a copy, since a change of the model would show up in the migrations of
        # the package django-axes.
        self.opts = copy(self.opts)
        self.opts.verbose_name, self.opts.verbose_name_plural = "failed login", "failed logins"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Returns the list with the name "failed logins"."""
        listed = super().get_changelist_instance(request)
        listed.opts = self.opts
        return listed

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Failed logins can't be added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Failed logins can't be changed."""
        return False
