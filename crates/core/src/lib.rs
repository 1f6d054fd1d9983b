//! The pure core of mintage: layouts, codecs and the minting step.
//!
//! The core reads no clock, does not sleep, does no I/O and knows nothing of Python. A scheme is one file in
//! [`schemes`]: its [`format`](mod@format), its ID and its `step`, a pure function of state and time. [`cell`] keeps a
//! state in one atomic word, [`fence`] the end of a generator's window, [`version`] the agreement of both with a node number,
//! [`buffer`] the segments of a sequence.
//!
//! Dependencies point one way: `units` → `layout`, `codec` → `format` → `schemes`; `step` → `cell`, `fence` →
//! `schemes`. `checks/crates.py` refuses a cycle.

#![deny(unsafe_code)]

pub mod advice;
pub mod buffer;
pub mod cell;
pub mod codec;
pub mod counting;
pub mod entropy;
pub mod error;
pub mod fence;
pub mod format;
pub mod given_time;
pub mod id;
pub mod layout;
pub mod mint;
pub mod prf;
pub mod schemes;
pub mod step;
mod sync;
pub mod ticked;
pub mod units;
pub mod version;
pub mod views;
