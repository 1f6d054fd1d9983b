"""Orders over HTTP: each worker mints its own IDs, under a lease from the PostgreSQL that the orders are in.

DATABASE_URL=postgresql://… gunicorn --workers 2 --worker-class uvicorn_worker.UvicornWorker app:app
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated
from uuid import UUID

import asyncpg
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, BaseModel, Field

from mintage import sno, snowflake, typeid
from mintage.errors import TransientError
from mintage.ext.pydantic import TypeID

DATABASE_URL = os.environ["DATABASE_URL"]
SCHEMA = Path(__file__).with_name("schema.sql")

# Nothing is leased here: gunicorn may load the application before it forks. A worker leases at its own first ID.
orders = sno.Generator(store=DATABASE_URL)
customers = snowflake.Generator(store=DATABASE_URL)
# Random bits make it hard to guess, as it is in links that customers get. It needs no lease.
receipts = typeid.Generator("rcpt")

# An int in Python and in the database, text in JSON: JavaScript would round the number.
CustomerID = Annotated[int, snowflake.Str()]
# Text with a prefix in JSON, a UUID in the database: both are read.
ReceiptID = Annotated[typeid.ID, TypeID("rcpt")]


class NewCustomer(BaseModel):
    name: str = Field(min_length=1, max_length=200)


class Customer(NewCustomer):
    id: CustomerID


class NewOrder(BaseModel):
    customer: CustomerID
    item: str = Field(min_length=1, max_length=200)
    count: int = Field(1, ge=1, le=1_000_000)


class Order(NewOrder):
    id: sno.ID
    receipt: ReceiptID


async def lease(generator: sno.Generator | snowflake.Generator) -> None:
    """Mint a first ID, which leases. PostgreSQL may start at the same time, and answer late."""
    async with asyncio.timeout(30):
        while True:
            try:
                await asyncio.to_thread(generator.new)
            except TransientError as error:
                await asyncio.sleep((error.retry_after_ms or 1000) / 1000)
            else:
                return


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    async with asyncpg.create_pool(DATABASE_URL, min_size=2, max_size=8) as app.state.pool:
        async with app.state.pool.acquire() as connection, connection.transaction():
            # Workers start at the same time, and one makes the tables.
            await connection.execute("SELECT pg_advisory_xact_lock(71)")
            await connection.execute(SCHEMA.read_text(encoding="utf-8"))
        # The first ID waits for a lease, so that no request has to.
        await asyncio.gather(lease(orders), lease(customers))
        yield
    # The node numbers are free at once, not at the end of their leases.
    orders.close()
    customers.close()


app = FastAPI(title="Orders", lifespan=lifespan)


@app.exception_handler(TransientError)
async def try_again(request: Request, error: TransientError) -> JSONResponse:
    """No ID can be minted now, as the database is away for longer than a lease lasts."""
    wait_s = -(-(error.retry_after_ms or 1000) // 1000)
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": str(wait_s)})


def pool(request: Request) -> asyncpg.Pool:
    return request.app.state.pool


Pool = Annotated[asyncpg.Pool, Depends(pool)]
COLUMNS = "id, receipt, customer, item, count"


@app.get("/healthz")
async def check(pool: Pool) -> str:
    return await pool.fetchval("SELECT 'ok'")


@app.post("/customers", status_code=201)
async def create_customer(new: NewCustomer, pool: Pool) -> Customer:
    customer = Customer(id=customers.new(), name=new.name)
    await pool.execute("INSERT INTO customers (id, name) VALUES ($1, $2)", customer.id, customer.name)
    return customer


@app.post("/orders", status_code=201)
async def create_order(new: NewOrder, pool: Pool) -> Order:
    order = Order(id=orders.new(), receipt=receipts.new(), **new.model_dump())
    try:
        await pool.execute(
            f"INSERT INTO orders ({COLUMNS}) VALUES ($1, $2, $3, $4, $5)",
            bytes(order.id),
            order.receipt.as_uuid(),
            order.customer,
            order.item,
            order.count,
        )
    except asyncpg.ForeignKeyViolationError:
        raise HTTPException(404, f"there is no customer {order.customer}") from None
    return order


async def one(pool: asyncpg.Pool, column: str, key: bytes | UUID, id: sno.ID | typeid.ID) -> Order:
    row = await pool.fetchrow(f"SELECT {COLUMNS} FROM orders WHERE {column} = $1", key)
    if row is None:
        raise HTTPException(404, f"there is no order {id}")
    return Order.model_validate(dict(row))


@app.get("/orders/{id}")
async def read_order(id: sno.ID, pool: Pool) -> Order:
    return await one(pool, "id", bytes(id), id)


@app.get("/receipts/{id}")
async def read_receipt(id: ReceiptID, pool: Pool) -> Order:
    return await one(pool, "receipt", id.as_uuid(), id)


@app.delete("/orders/{id}", status_code=204)
async def delete_order(id: sno.ID, pool: Pool) -> None:
    await pool.execute("DELETE FROM orders WHERE id = $1", bytes(id))


@app.get("/orders")
async def list_orders(
    customer: CustomerID,
    pool: Pool,
    after: sno.ID = sno.ID.ZERO,
    since: AwareDatetime | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[Order]:
    """A customer's orders as they were made, ``limit`` at a time: the last ID is the next ``after``.

    With ``since``, only those of that time or later. The time is in the ID, so the index of the IDs finds them.
    """
    first = sno.min_at(since) if since else sno.ID.ZERO
    rows = await pool.fetch(
        f"SELECT {COLUMNS} FROM orders WHERE customer = $1 AND id > $2 AND id >= $3 ORDER BY id LIMIT $4",
        customer,
        bytes(after),
        bytes(first),
        limit,
    )
    return [Order.model_validate(dict(row)) for row in rows]
