"""Puts the lease of a webhook on its next delivery."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('a2a_server', '0009_terms'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='pushconfig',
            name='holder',
        ),
        migrations.RemoveField(
            model_name='pushconfig',
            name='lease_expires_at',
        ),
        migrations.AddField(
            model_name='pushdelivery',
            name='attempt',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='pushdelivery',
            name='lease_expires_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
