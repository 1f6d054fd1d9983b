//! Bits of big-endian numbers of any width.

/// Sets up to 128 bits of a number, from bit `low` on; they must be 0 before.
pub fn put_bits(id: &mut [u8], low: u32, value: u128) {
    let (skip, shift) = (low as usize / 8, low % 8);
    for (i, byte) in id.iter_mut().rev().skip(skip).take(17).enumerate() {
        let at = 8 * i as u32;
        *byte |= if at < shift { value << shift } else { value.checked_shr(at - shift).unwrap_or(0) } as u8;
    }
}

/// Returns up to 128 bits of a number, from bit `low` on.
pub(super) fn get_bits(id: &[u8], low: u32, bits: u32) -> u128 {
    let (skip, shift) = (low as usize / 8, low % 8);
    let mut word = 0;
    for (i, &byte) in id.iter().rev().skip(skip).take((shift + bits).div_ceil(8) as usize).enumerate() {
        let at = 8 * i as u32;
        word |= if at < shift { u128::from(byte) >> shift } else { u128::from(byte) << (at - shift) };
    }
    word & (u128::MAX >> (128 - bits))
}
