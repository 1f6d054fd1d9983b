"""Make the new key the primary key. Stop the shop first: both tables are locked, in one transaction."""

import django.db.models.deletion
from django.db import migrations, models

from mintage.ext.django import SnoField

FILL = """
UPDATE orders_line SET new_order_id = orders_order.new_id FROM orders_order
WHERE orders_order.id = orders_line.order_id AND orders_line.new_order_id IS DISTINCT FROM orders_order.new_id
"""
# Without a column: of several unique indexes, the key must depend on that of the primary key.
REFER = (
    "ALTER TABLE orders_line ADD CONSTRAINT orders_line_order_id_fk "
    "FOREIGN KEY (order_id) REFERENCES orders_order DEFERRABLE INITIALLY DEFERRED"
)
FORWARD = [
    "LOCK TABLE orders_order, orders_line",
    # Lines that came, or went to another order, since the lines were filled.
    FILL,
    # The foreign key and the index of the old column go with it.
    "ALTER TABLE orders_line DROP COLUMN order_id",
    "ALTER TABLE orders_line RENAME COLUMN new_order_id TO order_id",
    "ALTER TABLE orders_order DROP CONSTRAINT orders_order_pkey",
    "ALTER TABLE orders_order RENAME COLUMN id TO old_id",
    "ALTER TABLE orders_order RENAME COLUMN new_id TO id",
    "ALTER TABLE orders_order ALTER COLUMN old_id DROP NOT NULL",
    # Fails if an order has no new key, and nothing has changed then.
    "ALTER TABLE orders_order ADD CONSTRAINT orders_order_pkey PRIMARY KEY USING INDEX orders_order_new_id",
    "ALTER TABLE orders_line ALTER COLUMN order_id SET NOT NULL",
    REFER,
]
BACKWARD = [
    "LOCK TABLE orders_order, orders_line",
    # Orders that came after the swap have no UUID.
    "UPDATE orders_order SET old_id = gen_random_uuid() WHERE old_id IS NULL",
    "ALTER TABLE orders_line DROP CONSTRAINT orders_line_order_id_fk",
    "ALTER TABLE orders_line RENAME COLUMN order_id TO new_order_id",
    "ALTER TABLE orders_line ALTER COLUMN new_order_id DROP NOT NULL",
    "ALTER TABLE orders_line ADD COLUMN order_id uuid",
    "UPDATE orders_line SET order_id = orders_order.old_id FROM orders_order WHERE orders_order.id = new_order_id",
    "ALTER TABLE orders_order DROP CONSTRAINT orders_order_pkey",
    "ALTER TABLE orders_order RENAME COLUMN id TO new_id",
    "ALTER TABLE orders_order RENAME COLUMN old_id TO id",
    "ALTER TABLE orders_order ALTER COLUMN new_id DROP NOT NULL",
    "ALTER TABLE orders_order ADD CONSTRAINT orders_order_pkey PRIMARY KEY (id)",
    "CREATE UNIQUE INDEX orders_order_new_id ON orders_order (new_id)",
    "CREATE INDEX orders_line_order_id ON orders_line (order_id)",
    "ALTER TABLE orders_line ALTER COLUMN order_id SET NOT NULL",
    REFER,
]


class Migration(migrations.Migration):
    dependencies = [("orders", "0004_fill_lines")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(FORWARD, BACKWARD)],
            [
                migrations.RemoveField("line", "order"),
                migrations.AlterField("order", "new_id", SnoField(primary_key=True)),
                migrations.AlterField("order", "id", models.UUIDField(editable=False, null=True, unique=True)),
                migrations.RenameField("order", "id", "old_id"),
                migrations.RenameField("order", "new_id", "id"),
                migrations.RemoveField("line", "new_order_id"),
                migrations.AddField(
                    "line",
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="lines", to="orders.order"
                    ),
                ),
            ],
        )
    ]
