"""Copy the new key of each order to its lines, while the shop goes on."""

from django.db import migrations

FILL = """
UPDATE orders_line SET new_order_id = orders_order.new_id FROM orders_order
WHERE orders_order.id = orders_line.order_id AND orders_line.new_order_id IS DISTINCT FROM orders_order.new_id
"""


class Migration(migrations.Migration):
    dependencies = [("orders", "0003_default_and_indexes")]
    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
