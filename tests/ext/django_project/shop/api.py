from __future__ import annotations

from rest_framework import serializers, viewsets

from mintage.ext.django import rest

from .models import Line, Order, Redemption, Refund, Tweet, User


def of(model_, *names):
    class Serializer(serializers.ModelSerializer):
        class Meta:
            model = model_
            fields = names

    Serializer.__name__ = f"{model_.__name__}Serializer"
    return Serializer


class Orders(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("pk")
    serializer_class = of(Order, "id", "buyer", "tags", "public", "title")
    lookup_value_regex = rest.lookup_regex("sno")


class Lines(viewsets.ModelViewSet):
    queryset = Line.objects.order_by("pk")
    serializer_class = of(Line, "id", "order", "reference")


class Users(viewsets.ModelViewSet):
    queryset = User.objects.order_by("pk")
    serializer_class = of(User, "id", "username")


class Tweets(viewsets.ModelViewSet):
    queryset = Tweet.objects.order_by("pk")
    serializer_class = of(Tweet, "id", "reply", "safe", "about")


class Redemptions(viewsets.ModelViewSet):
    queryset = Redemption.objects.order_by("pk")
    serializer_class = of(Redemption, "coupon")


class RefundSerializer(serializers.ModelSerializer):
    lines = serializers.PrimaryKeyRelatedField(
        source="order.lines", many=True, read_only=True, pk_field=rest.IDField("snowflake")
    )

    class Meta:
        model = Refund
        fields = ("order", "lines")


class Refunds(viewsets.ModelViewSet):
    queryset = Refund.objects.order_by("pk")
    serializer_class = RefundSerializer
