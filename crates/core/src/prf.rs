//! A pseudorandom function of a tick under a key: its bits are the same for all IDs of a tick, and unpredictable
//! without the key.
//!
//! A format that counts on from random bits within a tick thus needs no state beyond the tick and the count.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use std::fmt;

/// AES-128 under a secret key (FIPS 197), as a pseudorandom function of a tick.
#[derive(Clone)]
pub struct Prf(Aes128);

impl Prf {
    /// Returns the function of a key. Use the key for nothing else.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        Self(Aes128::new(&Array::from(key)))
    }

    /// Returns 128 bits for a tick.
    #[must_use]
    pub fn bits(&self, tick: u64) -> u128 {
        let mut block = Array::from(u128::from(tick).to_be_bytes());
        self.0.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }
}

impl fmt::Debug for Prf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prf(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain text of FIPS 197, appendix C.1, is no tick. These are the blocks of the zero key.
    #[test]
    fn the_bits_of_a_tick_are_aes_of_its_number() {
        let key = [0; 16];
        assert_eq!(Prf::new(key).bits(0), 0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
        assert_eq!(Prf::new(key).bits(1), 0x58e2_fcce_fa7e_3061_367f_1d57_a4e7_455a);
    }

    #[test]
    fn debug_output_has_no_key() {
        assert_eq!(format!("{:?}", Prf::new([7; 16])), "Prf(..)");
    }
}
