from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from orders.api import Customers, Orders
from rest_framework.routers import DefaultRouter

router = DefaultRouter()
router.register("customers", Customers)
router.register("orders", Orders)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include(router.urls)),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
]
