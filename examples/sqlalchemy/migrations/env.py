"""Connect Alembic to the database, and compare it with the models."""

import os

from alembic import context
from models import Base
from sqlalchemy import create_engine

from mintage.ext.sqlalchemy import include_name, render_item

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", target_metadata=Base.metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
else:
    engine = create_engine(os.environ["DATABASE_URL"])
    with engine.connect() as connection:
        context.configure(
            connection=connection, target_metadata=Base.metadata, render_item=render_item, include_name=include_name
        )
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()
