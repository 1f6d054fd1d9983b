from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel(
            "Customer",
            [
                ("id", models.BigAutoField(primary_key=True, auto_created=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=20)),
                ("joined", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            "Invoice",
            [
                ("id", models.BigAutoField(primary_key=True, auto_created=True, serialize=False, verbose_name="ID")),
                ("customer", models.ForeignKey("legacy.Customer", models.CASCADE)),
            ],
        ),
    ]
