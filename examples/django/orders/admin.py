from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from mintage.ext.django.admin import MintedAtMixin, MintedFilter

from .models import Customer, Event, Order, User

admin.site.register(User, UserAdmin)


@admin.register(Customer)
class Customers(MintedAtMixin, admin.ModelAdmin):
    list_display = ["id", "name", "minted_at"]
    search_fields = ["id", "name"]


class Events(admin.TabularInline):
    model = Event
    extra = 0


@admin.register(Order)
class Orders(MintedAtMixin, admin.ModelAdmin):
    list_display = ["id", "title", "buyer", "minted_at"]
    list_filter = [("id", MintedFilter)]
    search_fields = ["id", "title"]
    readonly_fields = ["minted_at"]
    raw_id_fields = ["buyer", "customer"]
    inlines = [Events]
