//! The state of a generator as data, to continue it elsewhere or later.

use super::step::Bounds;
use crate::error::Error;

/// The state of a generator as the Go library writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The partition.
    pub partition: u16,
    /// The lower sequence bound.
    pub sequence_min: u16,
    /// The upper sequence bound; 0 means 65535.
    pub sequence_max: u16,
    /// The last sequence number of `wall_hi`. A number above the bounds means that the unit is used up.
    pub sequence: u32,
    /// The unit in which the snapshot was taken; informative.
    pub now: u64,
    /// The highest unit seen.
    pub wall_hi: u64,
    /// The safe unit.
    pub wall_safe: u64,
    /// The number of times that the clock went back.
    pub drifts: u32,
    /// The pool from which the partition was leased; the Go library has none.
    pub leased: Option<Leased>,
}

/// A pool of partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leased {
    /// Its name.
    pub pool: String,
    /// The number of parts into which it divides the sequence numbers of a partition.
    pub shards: u32,
}

impl Snapshot {
    /// Returns the node number of its generator in a pool.
    ///
    /// # Errors
    /// [`Error::Snapshot`]: its bounds are not those of one of its pool's shards.
    pub fn node(&self) -> Result<u64, Error> {
        let shards = self.leased.as_ref().map_or(1, |leased| leased.shards);
        let (min, max) = (self.sequence_min, self.sequence_max);
        let shard = (u32::from(min) * shards) >> 16;
        if shards > 1 && Bounds::shard(shard, shards) != (Bounds { min, max }) {
            return Err(Error::Snapshot(format!(
                "sequence bounds {min}..{max} are not those of one of {shards} shards"
            )));
        }
        Ok(u64::from(self.partition) * u64::from(shards) + u64::from(shard))
    }
}
