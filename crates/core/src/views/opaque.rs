//! **opaque**: a permutation of IDs of 64, 80 or 128 bits under a key. Without the key, its output reveals nothing of
//! an ID.
//!
//! 128 bits are a block of AES-128 (FIPS 197). 64 and 80 bits are binary numerals of FF1 (NIST SP 800-38G), the most
//! significant bit first, without a tweak. Each width has a key of its own: the first half of SHA3-256 (FIPS 202) of a
//! name, the number of bits and the key. AES is thus another function for each width, and an attacker of one width
//! learns nothing of the others.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use fpe::ff1::{BinaryNumeralString, FF1};
use sha3::{Digest, Sha3_256};
use std::fmt;

/// The sizes of IDs, in bytes.
pub const SIZES: [usize; 3] = [8, 10, 16];
/// The bytes of a key.
pub const KEY: usize = 16;

/// The permutations of a key.
pub struct Opaque {
    block: Aes128,
    numerals: [FF1<Aes128>; 2],
}

impl Opaque {
    /// Returns the permutations of a key. The key cannot be read back.
    #[must_use]
    pub fn new(key: &[u8; KEY]) -> Self {
        let [eight, ten, block] = SIZES.map(|size| subkey(key, size));
        // FF1 accepts the radix 2.
        let numerals = [eight, ten].map(|key| FF1::new(&key, 2).unwrap_or_else(|_| unreachable!()));
        Self { block: Aes128::new(&Array::from(block)), numerals }
    }

    /// Hides an ID in place; returns false if its size is none of the [`SIZES`].
    #[must_use]
    pub fn hide(&self, id: &mut [u8]) -> bool {
        self.apply(id, |block| self.block.encrypt_block(block), |numerals, bits| numerals.encrypt(&[], bits).ok())
    }

    /// Reveals a hidden ID in place; returns false if its size is none of the [`SIZES`].
    #[must_use]
    pub fn reveal(&self, id: &mut [u8]) -> bool {
        self.apply(id, |block| self.block.decrypt_block(block), |numerals, bits| numerals.decrypt(&[], bits).ok())
    }

    fn apply(
        &self,
        id: &mut [u8],
        block: impl FnOnce(&mut aes::Block),
        numerals: impl FnOnce(&FF1<Aes128>, &BinaryNumeralString) -> Option<BinaryNumeralString>,
    ) -> bool {
        let done = match id.len() {
            8 => numerals(&self.numerals[0], &bits(id)),
            10 => numerals(&self.numerals[1], &bits(id)),
            16 => {
                let mut cipher_block = Array::default();
                cipher_block.copy_from_slice(id);
                block(&mut cipher_block);
                id.copy_from_slice(&cipher_block);
                return true;
            }
            _ => None,
        };
        let Some(done) = done else { return false };
        for (byte, permuted) in id.iter_mut().zip(done.to_bytes_le()) {
            *byte = permuted.reverse_bits();
        }
        true
    }
}

/// The output has no key in it.
impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opaque(..)")
    }
}

fn subkey(key: &[u8; KEY], size: usize) -> [u8; KEY] {
    let digest =
        Sha3_256::new().chain_update(b"mintage.opaque").chain_update([8 * size as u8]).chain_update(key).finalize();
    std::array::from_fn(|i| digest[i])
}

/// Returns the bits of an ID, the most significant first. The crate reads each byte from the other end.
fn bits(id: &[u8]) -> BinaryNumeralString {
    let reversed: Vec<u8> = id.iter().map(|byte| byte.reverse_bits()).collect();
    BinaryNumeralString::from_bytes_le(&reversed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fpe::ff1::FlexibleNumeralString;
    use proptest::prelude::*;

    /// The samples of NIST for FF1 with AES-128: radix, tweak, plain and cipher numerals.
    const SAMPLES: [(u32, &str, &str, &str); 3] = [
        (10, "", "0123456789", "2433477484"),
        (10, "39383736353433323130", "0123456789", "6124200773"),
        (36, "3737373770717273373737", "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
    ];

    fn numerals(text: &str) -> FlexibleNumeralString {
        text.chars().map(|c| c.to_digit(36).unwrap() as u16).collect::<Vec<_>>().into()
    }

    #[test]
    fn ff1_agrees_with_the_samples_of_nist() {
        let key: [u8; 16] = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        for (radix, tweak, plain, hidden) in SAMPLES {
            let tweak: Vec<u8> =
                (0..tweak.len()).step_by(2).map(|i| u8::from_str_radix(&tweak[i..i + 2], 16).unwrap()).collect();
            let ff1 = FF1::<Aes128>::new(&key, radix).unwrap();
            let actual: Vec<u16> = ff1.encrypt(&tweak, &numerals(plain)).unwrap().into();
            assert_eq!(actual, Vec::<u16>::from(numerals(hidden)));
            let back: Vec<u16> = ff1.decrypt(&tweak, &numerals(hidden)).unwrap().into();
            assert_eq!(back, Vec::<u16>::from(numerals(plain)));
        }
    }

    /// FIPS 197, appendix C.1.
    #[test]
    fn aes_agrees_with_its_standard() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let mut block = Array::from(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes());
        Aes128::new(&Array::from(key)).encrypt_block(&mut block);
        assert_eq!(u128::from_be_bytes(block.into()), 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a);
    }

    proptest! {
        #[test]
        fn a_hidden_id_is_revealed(key: [u8; 16], id: [u8; 16]) {
            let opaque = Opaque::new(&key);
            for size in SIZES {
                let mut hidden = id[..size].to_vec();
                prop_assert!(opaque.hide(&mut hidden));
                prop_assert_ne!(&hidden, &id[..size]);
                prop_assert!(opaque.reveal(&mut hidden));
                prop_assert_eq!(&hidden, &id[..size]);
                // It is a permutation: every ID is also the hidden form of another.
                prop_assert!(opaque.reveal(&mut hidden) && opaque.hide(&mut hidden));
                prop_assert_eq!(&hidden, &id[..size]);
            }
        }

        #[test]
        fn binary_numerals_begin_with_the_most_significant_bit(key: [u8; 16], id: [u8; 10]) {
            for size in [8, 10] {
                let mut hidden = id[..size].to_vec();
                prop_assert!(Opaque::new(&key).hide(&mut hidden));
                let each = |bytes: &[u8]| -> Vec<u16> {
                    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1))).collect()
                };
                let ff1 = FF1::<Aes128>::new(&subkey(&key, size), 2).unwrap();
                let actual = ff1.encrypt(&[], &FlexibleNumeralString::from(each(&id[..size]))).unwrap();
                prop_assert_eq!(Vec::<u16>::from(actual), each(&hidden));
            }
        }

        #[test]
        fn a_bit_of_id_or_key_changes_about_half_of_the_output(key: [u8; 16], id: [u8; 16], bit in 0_usize..64) {
            for size in SIZES {
                let shown = |key: &[u8; 16], mut id: Vec<u8>| {
                    assert!(Opaque::new(key).hide(&mut id));
                    id
                };
                let (mut other, mut other_key) = (id[..size].to_vec(), key);
                other[bit / 8] ^= 1 << (bit % 8);
                other_key[bit / 8] ^= 1 << (bit % 8);
                let one = shown(&key, id[..size].to_vec());
                for two in [shown(&key, other), shown(&other_key, id[..size].to_vec())] {
                    let differing: u32 = one.iter().zip(&two).map(|(a, b)| (a ^ b).count_ones()).sum();
                    // Half of the bits, with far more tolerance than chance needs.
                    prop_assert!((10..=size as u32 * 8 - 10).contains(&differing));
                }
            }
        }
    }

    #[test]
    fn other_sizes_are_refused_and_debug_output_has_no_key() {
        let opaque = Opaque::new(&[7; 16]);
        for size in [0, 7, 9, 12, 17] {
            assert!(!opaque.hide(&mut vec![0; size]) && !opaque.reveal(&mut vec![0; size]));
        }
        assert_eq!(format!("{opaque:?}"), "Opaque(..)");
    }
}
