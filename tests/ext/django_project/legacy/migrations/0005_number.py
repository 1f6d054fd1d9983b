from django.db import migrations

import mintage.ext.django


class Migration(migrations.Migration):
    dependencies = [("legacy", "0004_number")]
    operations = [
        migrations.AlterField("Customer", "number", mintage.ext.django.SnoField(unique=True, editable=False)),
    ]
