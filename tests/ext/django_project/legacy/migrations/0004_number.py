from django.db import migrations

import mintage.ext.django
from mintage import sno


def make(apps, schema_editor):
    customers = apps.get_model("legacy", "Customer").objects
    customers.create(name="new", joined="2025-05-01T00:00:00Z")
    minted = sno.Generator(partition=9)
    for customer in customers.all():
        customer.number = minted.new_at(customer.joined)
        customer.save()


class Migration(migrations.Migration):
    dependencies = [("legacy", "0003_snowflakes")]
    operations = [
        migrations.AddField("Customer", "number", mintage.ext.django.SnoField(null=True, editable=False)),
        migrations.RunPython(make, migrations.RunPython.noop),
    ]
