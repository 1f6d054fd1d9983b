from datetime import datetime

from django.db import transaction
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import exception_handler

from mintage.errors import MintError, TransientError

from .models import Customer, Event, Invoice, Order


def answer_errors(error, context):
    """Answer 503 where an ID cannot be minted now, as when the store is away for long: the client tries again."""
    if isinstance(error, TransientError):
        wait_s = -(-(error.retry_after_ms or 1000) // 1000)
        return Response({"detail": str(error)}, 503, headers={"Retry-After": str(wait_s)})
    return exception_handler(error, context)


class CustomerSerializer(serializers.ModelSerializer):
    class Meta:
        model = Customer
        fields = ("id", "name")


class OrderSerializer(serializers.ModelSerializer):
    events = serializers.IntegerField(write_only=True, default=0, min_value=0, max_value=100)

    class Meta:
        model = Order
        fields = ("id", "buyer", "customer", "title", "events")

    @transaction.atomic
    def create(self, validated_data):
        count = validated_data.pop("events")
        order = super().create(validated_data)
        Event.objects.bulk_create([Event(order=order, number=number) for number in range(count)])
        return order


class Pages(CursorPagination):
    ordering = "pk"
    page_size = 100


class Customers(viewsets.ModelViewSet):
    queryset = Customer.objects.order_by("pk")
    serializer_class = CustomerSerializer
    pagination_class = Pages


class Orders(viewsets.ModelViewSet):
    """One order, or a list of them; ``?after=2026-01-01T00:00:00Z`` lists those minted since then."""

    queryset = Order.objects.order_by("pk")
    serializer_class = OrderSerializer
    pagination_class = Pages

    def get_serializer(self, *args, **kwargs):
        return super().get_serializer(*args, **{"many": isinstance(kwargs.get("data"), list), **kwargs})

    def get_queryset(self):
        orders = super().get_queryset()
        if after := self.request.query_params.get("after"):
            try:
                return orders.filter(pk__minted_after=datetime.fromisoformat(after))
            except (MintError, ValueError) as error:
                raise ValidationError({"after": str(error)}) from error
        return orders

    @action(detail=True, methods=["post"])
    def invoice(self, request, pk=None):
        """Give the order an invoice; a second request is answered with the same."""
        invoice, is_new = Invoice.objects.get_or_create(order=self.get_object())
        return Response({"number": invoice.number}, 201 if is_new else 200)
