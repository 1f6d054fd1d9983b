from datetime import UTC, datetime, timedelta

from django.db import migrations


def make(apps, schema_editor):
    joined = datetime(2024, 5, 1, tzinfo=UTC)
    for number in range(3):
        customer = apps.get_model("legacy", "Customer").objects.create(
            name=f"old {number}", joined=joined + timedelta(days=number)
        )
        apps.get_model("legacy", "Invoice").objects.create(customer=customer)


class Migration(migrations.Migration):
    dependencies = [("legacy", "0001_initial")]
    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
