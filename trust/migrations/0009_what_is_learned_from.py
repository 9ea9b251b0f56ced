from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("trust", "0008_review_keys"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="observation", name="observation_recent"),
        migrations.AddField(
            model_name="caller",
            name="learned_up_to",
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="observation",
            name="has_more",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        # For stored observations whose review still exists.
        migrations.RunSQL(
            "UPDATE trust_observation SET has_more = true FROM trust_review AS review"
            " WHERE review.id = review_id AND (jsonb_array_length(review.messages) > 1 OR review.files <> '[]')",
            migrations.RunSQL.noop,
        ),
    ]
