from __future__ import annotations

from django.contrib import admin
from django.http import JsonResponse
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.routers import DefaultRouter
from shop import api

from mintage.ext.django import JSONEncoder
from mintage.ext.django.urls import register_converters
from mintage.formats.annotations import NAMED

register_converters()

router = DefaultRouter()
router.register("orders", api.Orders)
router.register("lines", api.Lines)
router.register("users", api.Users)
router.register("tweets", api.Tweets)
router.register("refunds", api.Refunds)
router.register("redemptions", api.Redemptions)


def echo(request, pk):
    return JsonResponse({"type": type(pk).__name__, "pk": pk}, encoder=JSONEncoder)


urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include(router.urls)),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    *(path(f"{name}/<{name}:pk>/", echo, name=name) for name in NAMED),
]
