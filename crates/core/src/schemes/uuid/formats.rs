//! The formats of a UUID, and the one that each ID has.

use super::id::Id;
use super::special::{MAX, NIL, OTHER};
use super::{v1, v2, v3, v4, v5, v6, v7, v8};
use crate::codec::Hex;
use crate::format::Format;
use crate::id::bytes_id;

/// Every format with a structure of its own.
pub const FORMATS: [Format; 10] =
    [v1::FORMAT, v2::FORMAT, v3::FORMAT, v4::FORMAT, v5::FORMAT, v6::FORMAT, v7::FORMAT, v8::FORMAT, NIL, MAX];

bytes_id! {
    impl Id(v7::FORMAT, "UUID", "UUID text", 16, 36) by Hex, from bytes => Self(bytes), to id => id.0;

    fn format(&self) -> Format<'static> {
        match (*self, self.version()) {
            (Self::NIL, _) => NIL,
            (Self::MAX, _) => MAX,
            (_, Some(version @ 1..=8)) => FORMATS[version as usize - 1],
            _ => OTHER,
        }
    }
}
