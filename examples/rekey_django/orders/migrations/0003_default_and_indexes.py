"""Give new orders an ID, and build the indexes while the shop goes on."""

from django.db import migrations

from mintage import sno
from mintage.ext.django import SnoField


class Migration(migrations.Migration):
    atomic = False  # for CONCURRENTLY
    dependencies = [("orders", "0002_new_columns")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"CREATE {unique} INDEX CONCURRENTLY {name} ON {table} ({column})",
                    f"DROP INDEX IF EXISTS {name}",
                )
                for unique, name, table, column in (
                    ("UNIQUE", "orders_order_new_id", "orders_order", "new_id"),
                    ("UNIQUE", "orders_order_old_id", "orders_order", "id"),
                    ("", "orders_line_new_order_id", "orders_line", "new_order_id"),
                )
            ],
            [
                migrations.AlterField("order", "new_id", SnoField(null=True, unique=True, default=sno.new)),
                migrations.AlterField("line", "new_order_id", SnoField(null=True, db_index=True)),
            ],
        )
    ]
