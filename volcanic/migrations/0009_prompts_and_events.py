"""Adds prompts, the owner's log of events, and leases of notification deliveries."""

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('volcanic', '0008_names'),
    ]

    operations = [
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField(null=True)),
                ('kind', models.CharField(max_length=20)),
                ('subject', models.CharField(max_length=40)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='EventLog',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='event_log', serialize=False, to='volcanic.workspace')),
                ('last_number', models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Prompt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('origin', models.CharField(max_length=100)),
                ('kind', models.CharField(choices=[('message', 'Message of the owner'), ('follow_up', 'Follow-up')], default='message', max_length=10)),
                ('text', models.TextField()),
                ('files', models.JSONField(blank=True, default=list)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('input_required', 'Input Required'), ('failed', 'Failed'), ('stopped', 'Stopped')], default='queued', max_length=20)),
                ('answer', models.TextField(blank=True)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('worker', models.CharField(blank=True, max_length=100)),
                ('lease_expires_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.RemoveIndex(
            model_name='notificationdelivery',
            name='notification_due',
        ),
        migrations.RemoveIndex(
            model_name='session',
            name='session_busy_in_workspace',
        ),
        # Tries counted in the old column count as retries.
        migrations.RenameField('notificationdelivery', 'attempts', 'retries'),
        migrations.RemoveField(
            model_name='session',
            name='busy_until',
        ),
        migrations.AddField(
            model_name='notificationdelivery',
            name='attempt',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='notificationdelivery',
            name='lease_expires_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='asker',
            field=models.CharField(blank=True, db_default='', max_length=100),
        ),
        migrations.AddIndex(
            model_name='notificationdelivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['workspace', 'channel', 'next_try_at'], name='notification_pending'),
        ),
        migrations.AddField(
            model_name='event',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='volcanic.workspace'),
        ),
        migrations.AddField(
            model_name='prompt',
            name='session',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prompts', to='volcanic.session'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(condition=models.Q(('number__isnull', True)), fields=['workspace', 'id'], name='event_without_number'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=django.contrib.postgres.indexes.BrinIndex(fields=['created_at'], name='event_prunable'),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.UniqueConstraint(condition=models.Q(('number__isnull', False)), fields=('workspace', 'number'), name='event_number_unique_in_workspace'),
        ),
        migrations.AddIndex(
            model_name='prompt',
            index=models.Index(fields=['session', 'id'], name='prompt_log_of_session'),
        ),
        migrations.AddIndex(
            model_name='prompt',
            index=models.Index(condition=models.Q(('state', 'queued')), fields=['session', 'id'], name='prompt_queue_of_session'),
        ),
        migrations.AddIndex(
            model_name='prompt',
            index=models.Index(condition=models.Q(('state', 'running')), fields=['lease_expires_at'], name='prompt_expired_runs'),
        ),
        migrations.AddConstraint(
            model_name='prompt',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'completed', 'input_required', 'failed', 'stopped'])), name='prompt_state_listed'),
        ),
        migrations.AddConstraint(
            model_name='prompt',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('session',), name='prompt_one_running_per_session'),
        ),
        migrations.AddConstraint(
            model_name='prompt',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('lease_expires_at__isnull', False), ('state', 'running')), models.Q(models.Q(('state', 'running'), _negated=True), ('lease_expires_at__isnull', True)), _connector='OR'), name='prompt_lease_while_running'),
        ),
        # Open questions are looked up by their asker. The asker of a task's question is the task's origin.
        migrations.RunSQL(
            "UPDATE volcanic_turn SET asker = origin WHERE pending IS NOT NULL AND origin LIKE 'task:%'",
            migrations.RunSQL.noop,
        ),
    ]
