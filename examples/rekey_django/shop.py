"""Take orders and list them, in whichever release RELEASE names."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from orders.models import Line, Order  # noqa: E402  (models need the setup)

_, verb, *words = sys.argv
if verb == "order":
    order = Order.objects.create(customer=words[0])
    for title in words[1:]:
        Line.objects.create(order=order, title=title)
    print(order.pk)
for order in Order.objects.order_by("created") if verb == "list" else ():
    print(order.pk, order.customer, *sorted(line.title for line in order.lines.all()))
