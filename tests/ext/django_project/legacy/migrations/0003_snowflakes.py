from django.db import migrations

import mintage.ext.django


class Migration(migrations.Migration):
    dependencies = [("legacy", "0002_rows")]
    operations = [
        *(
            migrations.AlterField(
                model,
                "id",
                mintage.ext.django.SnowflakeAutoField(
                    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                ),
            )
            for model in ("Customer", "Invoice")
        ),
    ]
