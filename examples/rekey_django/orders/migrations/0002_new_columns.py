"""Add the columns of the new key, which are NULL in all rows."""

from django.db import migrations

from mintage.ext.django import SnoField


class Migration(migrations.Migration):
    dependencies = [("orders", "0001_initial")]
    operations = [
        # A default here would be one ID for all rows: Django evaluates it once.
        migrations.AddField("order", "new_id", SnoField(null=True)),
        migrations.AddField("line", "new_order_id", SnoField(null=True)),
    ]
