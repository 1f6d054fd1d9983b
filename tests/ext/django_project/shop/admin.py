from __future__ import annotations

from django.contrib import admin

from mintage.ext.django.admin import MintedAtMixin, MintedFilter

from .models import ROWS, Line, Order, Tag, User

admin.site.register([User, Tag])


class Lines(admin.TabularInline):
    model = Line
    extra = 0


@admin.register(Order)
class Orders(MintedAtMixin, admin.ModelAdmin):
    list_display = ["id", "title", "minted_at"]
    list_editable = ["title"]
    readonly_fields = ["minted_at"]
    search_fields = ["id", "title", "buyer__id"]
    list_filter = [("id", MintedFilter)]
    raw_id_fields = ["buyer"]
    inlines = [Lines]


@admin.register(Line)
class LinesOf(MintedAtMixin, admin.ModelAdmin):
    list_display = ["id", "order", "minted_at"]
    autocomplete_fields = ["order"]
    search_fields = ["=id"]
    list_filter = [("id", MintedFilter)]


class Row(MintedAtMixin, admin.ModelAdmin):
    list_display = ["pk", "minted_at"]
    search_fields = ["pk", "name"]
    list_filter = [("id", MintedFilter)]


for model in ROWS.values():
    admin.site.register(model, Row)
