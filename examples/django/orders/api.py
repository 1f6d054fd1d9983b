from datetime import datetime

from django.db import transaction
from rest_framework import serializers, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination

from mintage.errors import MintError

from .models import Event, Order


class OrderSerializer(serializers.ModelSerializer):
    events = serializers.IntegerField(write_only=True, default=0, min_value=0, max_value=100)

    class Meta:
        model = Order
        fields = ("id", "buyer", "title", "events")

    @transaction.atomic
    def create(self, validated_data):
        count = validated_data.pop("events")
        order = super().create(validated_data)
        Event.objects.bulk_create([Event(order=order, number=number) for number in range(count)])
        return order


class Pages(CursorPagination):
    ordering = "pk"


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
