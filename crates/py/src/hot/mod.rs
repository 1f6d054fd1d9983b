//! The hot path: nearly all of the binding's unsafe code; the rest is in `kernel`.
//!
//! A call that mints one ID costs less than a clock reading and an allocation do, so both are avoided here:
//! - the **cached tick** keeps the present millisecond behind the processor's cycle counter;
//! - the **free list** keeps a few freed objects of each ID class for reuse;
//! - the methods `new` and `__next__` of the generators, and `parse` and `__str__` of the IDs, are raw C functions in place
//!   of PyO3's. They handle the common case and hand anything else to the plain PyO3 methods;
//! - real objects of the standard `uuid.UUID` are made without its constructor.
//!
//! Everything here runs attached to the interpreter. What threads share is in `with_gil` or `without_gil`, of which the build
//! chooses one. All of it runs in the main interpreter: the module refuses any other.

#![allow(unsafe_code)]

mod arrow;
mod buffer;
mod free;
mod interpreter;
mod methods;
mod tick;
mod uuid;
#[cfg(not(Py_GIL_DISABLED))]
mod with_gil;
#[cfg(Py_GIL_DISABLED)]
mod without_gil;

pub use arrow::*;
pub use buffer::*;
pub use free::*;
pub use interpreter::*;
pub use methods::*;
pub use tick::*;
pub use uuid::*;
#[cfg(not(Py_GIL_DISABLED))]
pub use with_gil::*;
#[cfg(Py_GIL_DISABLED)]
pub use without_gil::*;
