//! Conversions of full registers of IDs, chosen at run time.
//!
//! A kernel converts whole blocks from the front and returns the number of IDs that it converted. It stops before the
//! first block with an error. All unsafe code of the crate is in this file. There are three kinds: loads and stores
//! through pointers into arrays that are at least as long, calls of kernels whose instructions the machine has, and
//! slices seen as slices of arrays. A [`Path`] is the proof that the machine has the instructions.

#![allow(unsafe_code, reason = "loads, stores and calls of detected instruction sets; each block says why it is sound")]
#![cfg_attr(not(any(avx, neon)), allow(dead_code, reason = "the portable path has no use for blocks and tables"))]

use std::fmt;
use std::iter::zip;
use std::slice;

use super::swar::HYPHENS;

/// A set of kernels that this machine can run.
#[derive(Clone, Copy)]
pub struct Path(&'static Kernels);

/// A conversion of items to items, which returns the number converted.
type Kernel<A, B> = unsafe fn(&[A], &mut [B]) -> usize;

/// The kernels of one instruction set.
struct Kernels {
    name: &'static str,
    base32_encode: Kernel<[u8; 10], [u8; 16]>,
    base32_decode: Kernel<[u8; 16], [u8; 10]>,
    hex_encode: Kernel<[u8; 16], [u8; 36]>,
    hex_decode: Kernel<[u8; 36], [u8; 16]>,
}

/// The kernels that convert nothing, and leave all items to the code for a single ID.
static PORTABLE: Kernels = Kernels {
    name: "portable",
    base32_encode: |_, _| 0,
    base32_decode: |_, _| 0,
    hex_encode: |_, _| 0,
    hex_decode: |_, _| 0,
};

impl Path {
    /// Iterates over the paths of this machine, the fastest first, the portable one last.
    pub fn available() -> impl Iterator<Item = Path> {
        #[cfg(avx)]
        let simd = [
            (is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi"))
                .then_some(&avx512::KERNELS),
            is_x86_feature_detected!("avx2").then_some(&avx2::KERNELS),
        ];
        #[cfg(neon)]
        let simd = [std::arch::is_aarch64_feature_detected!("neon").then_some(&neon::KERNELS)];
        #[cfg(not(any(avx, neon)))]
        let simd: [Option<&Kernels>; 0] = [];
        simd.into_iter().flatten().chain([&PORTABLE]).map(Path)
    }

    /// Returns the fastest path of this machine.
    pub fn best() -> Path {
        Self::available().next().unwrap_or(Path(&PORTABLE))
    }

    /// Returns the name of the path.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn base32_encode(self, ids: &[[u8; 10]], text: &mut [[u8; 16]]) -> usize {
        // SAFETY: only `available` makes paths, from kernels whose instructions it has detected.
        unsafe { (self.0.base32_encode)(ids, text) }
    }

    pub(super) fn base32_decode(self, text: &[[u8; 16]], ids: &mut [[u8; 10]]) -> usize {
        // SAFETY: as above.
        unsafe { (self.0.base32_decode)(text, ids) }
    }

    pub(super) fn hex_encode(self, ids: &[[u8; 16]], text: &mut [[u8; 36]]) -> usize {
        // SAFETY: as above.
        unsafe { (self.0.hex_encode)(ids, text) }
    }

    pub(super) fn hex_decode(self, text: &[[u8; 36]], ids: &mut [[u8; 16]]) -> usize {
        // SAFETY: as above.
        unsafe { (self.0.hex_decode)(text, ids) }
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({})", self.0.name)
    }
}

/// Splits a slice into arrays of `N` items and a rest that is shorter. The method of slices needs Rust 1.88.
#[inline(always)]
#[must_use]
pub fn as_chunks<T, const N: usize>(items: &[T]) -> (&[[T; N]], &[T]) {
    let count = items.len() / N;
    let (whole, rest) = items.split_at(count * N);
    // SAFETY: an array is its items in a row, and `whole` has the items of `count` arrays.
    (unsafe { slice::from_raw_parts(whole.as_ptr().cast(), count) }, rest)
}

/// Does the same for a slice that can be changed.
#[inline(always)]
#[must_use]
pub fn as_chunks_mut<T, const N: usize>(items: &mut [T]) -> (&mut [[T; N]], &mut [T]) {
    let count = items.len() / N;
    let (whole, rest) = items.split_at_mut(count * N);
    // SAFETY: as above, and nothing else refers to `whole`.
    (unsafe { slice::from_raw_parts_mut(whole.as_mut_ptr().cast(), count) }, rest)
}

/// Calls `step` with each block of `N` items until it refuses one; returns the number of items converted.
#[inline(always)]
fn blocks<const N: usize, A, B>(from: &[A], to: &mut [B], step: impl Fn(&[A; N], &mut [B; N]) -> bool) -> usize {
    let (from, to) = (as_chunks(from).0, as_chunks_mut(to).0);
    for (done, (from, to)) in zip(from, to).enumerate() {
        if !step(from, to) {
            return N * done;
        }
    }
    N * from.len()
}

/// Computes an array in a constant, from a formula for the byte at an index.
macro_rules! table {
    ($len:literal, |$i:ident| $byte:expr) => {{
        let mut table = [0; $len];
        let mut $i = 0;
        while $i < $len {
            table[$i] = ($byte) as u8;
            $i += 1;
        }
        table
    }};
}

/// Returns whether a hyphen is at a position of the text of a UUID.
const fn is_hyphen(place: usize) -> bool {
    let [a, b, c, d] = HYPHENS;
    place == a || place == b || place == c || place == d
}

/// Returns the position of a digit in the text of a UUID.
const fn place(digit: usize) -> usize {
    match digit {
        0..8 => digit,
        8..12 => digit + 1,
        12..16 => digit + 2,
        16..20 => digit + 3,
        _ => digit + 4,
    }
}

/// Returns the digit at a position of the text of a UUID; at a hyphen, any digit.
const fn digit(place: usize) -> usize {
    match place {
        0..9 => place,
        9..14 => place - 1,
        14..19 => place - 2,
        19..24 => place - 3,
        _ => place - 4,
    }
}

#[cfg(avx)]
#[allow(clippy::incompatible_msrv, reason = "an older compiler leaves these kernels out")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::super::swar::{self, Alphabet};
    use super::{Kernels, blocks, digit, place};

    pub static KERNELS: Kernels = Kernels { name: "avx512", base32_encode, base32_decode, hex_encode, hex_decode };

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn base32_encode(ids: &[[u8; 10]], text: &mut [[u8; 16]]) -> usize {
        // Five bytes become a little-endian number in a quad word. Each byte of the quad word then takes eight bits of
        // the number; the lowest five are its own. The other three do no harm: the table repeats, and the lookup
        // ignores the top two.
        let take = load(const { &table!(64, |i| i / 8 * 5 + 4_usize.saturating_sub(i % 8)) });
        let shifts = load(const { &table!(64, |i| 35 - i % 8 * 5) });
        let characters = load(&BASE32.characters);
        blocks::<4, _, _>(ids, text, |ids, text| {
            let numbers = _mm512_permutexvar_epi8(take, load(ids.as_flattened()));
            let values = _mm512_multishift_epi64_epi8(shifts, numbers);
            store(text.as_flattened_mut(), _mm512_permutexvar_epi8(values, characters));
            true
        })
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn base32_decode(text: &[[u8; 16]], ids: &mut [[u8; 10]]) -> usize {
        let shifts = load(const { &table!(64, |i| (12 + 64 - i % 8 * 8) % 64) });
        let take = load(const { &table!(40, |i| i / 5 * 8 + i % 5) });
        blocks::<4, _, _>(text, ids, |text, ids| {
            let (values, bad) = BASE32.read(load(text.as_flattened()));
            let tens = _mm512_maddubs_epi16(values, _mm512_set1_epi16(0x01_20));
            let twenties = _mm512_madd_epi16(tens, _mm512_set1_epi32(0x0001_0400));
            // With the second twenty bits at the top of a quad word and the first at its bottom, they are one number of
            // forty bits that wraps around the end, as a multishift does.
            let forties = _mm512_sllv_epi32(twenties, _mm512_set1_epi64(12 << 32));
            let bytes = _mm512_multishift_epi64_epi8(shifts, forties);
            store(ids.as_flattened_mut(), _mm512_permutexvar_epi8(take, bytes));
            bad == 0
        })
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn hex_encode(ids: &[[u8; 16]], text: &mut [[u8; 36]]) -> usize {
        let take = load(const { &table!(36, |i| digit(i) / 2) });
        let shifts = load(const { &table!(36, |i| i % 8 * 8 + (1 - digit(i) % 2) * 4) });
        let characters = load(&HEX.characters);
        let hyphens = _mm512_set1_epi8(b'-' as i8);
        blocks::<1, _, _>(ids, text, |[id], [text]| {
            let bytes = _mm512_permutexvar_epi8(take, load(id));
            let values = _mm512_multishift_epi64_epi8(shifts, bytes);
            store(text, _mm512_mask_permutexvar_epi8(hyphens, !HYPHENS, values, characters));
            true
        })
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn hex_decode(text: &[[u8; 36]], ids: &mut [[u8; 16]]) -> usize {
        let take = load(const { &table!(32, |i| place(i)) });
        blocks::<1, _, _>(text, ids, |[text], [id]| {
            let text = load(text);
            let (values, bad) = HEX.read(text);
            let hyphens = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(b'-' as i8));
            let digits = _mm512_permutexvar_epi8(take, values);
            let bytes = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x01_10));
            store(id, _mm512_castsi256_si512(_mm512_cvtepi16_epi8(bytes)));
            bad & mask(36) == HYPHENS && hyphens == HYPHENS
        })
    }

    /// The positions of the hyphens of a UUID.
    const HYPHENS: u64 = 1 << 8 | 1 << 13 | 1 << 18 | 1 << 23;

    static BASE32: Tables = Tables::new(swar::BASE32);
    static HEX: Tables = Tables::new(swar::HEX);

    /// The tables of an alphabet, for lookups in both directions.
    struct Tables {
        /// The characters by value, repeated.
        characters: [u8; 64],
        /// The values by ASCII character, with the top bit set for characters outside the alphabet.
        values: [u8; 128],
    }

    impl Tables {
        const fn new(alphabet: Alphabet) -> Self {
            let mut tables = Tables { characters: [0; 64], values: [0x80; 128] };
            let mut i = 0;
            while i < 128 {
                let value = i as u8 % (1 << alphabet.bits);
                let gap = if value < alphabet.digits { 0 } else { alphabet.gap() };
                tables.characters[i % 64] = alphabet.zero + value + gap;
                if let Some(value) = alphabet.value(i as u8) {
                    tables.values[i] = value;
                }
                i += 1;
            }
            tables
        }

        /// Returns the values of characters, and a mask of those outside the alphabet.
        #[inline]
        #[target_feature(enable = "avx512bw,avx512vbmi")]
        fn read(&self, text: __m512i) -> (__m512i, u64) {
            let (low, high) = self.values.split_at(64);
            let values = _mm512_permutex2var_epi8(load(low), text, load(high));
            (values, _mm512_movepi8_mask(_mm512_or_si512(values, text)))
        }
    }

    /// Returns a mask of the first `len` of 64 bytes.
    #[inline]
    const fn mask(len: usize) -> u64 {
        assert!(len >= 1 && len <= 64);
        u64::MAX >> (64 - len)
    }

    /// Loads 1 to 64 bytes, with zeros after them.
    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn load(bytes: &[u8]) -> __m512i {
        // SAFETY: the mask keeps the load within `bytes`.
        unsafe { _mm512_maskz_loadu_epi8(mask(bytes.len()), bytes.as_ptr().cast()) }
    }

    /// Stores 1 to 64 bytes.
    #[inline]
    #[target_feature(enable = "avx512bw")]
    fn store(room: &mut [u8], bytes: __m512i) {
        // SAFETY: the mask keeps the store within `room`.
        unsafe { _mm512_mask_storeu_epi8(room.as_mut_ptr().cast(), mask(room.len()), bytes) }
    }
}

/// Tables for the paths with 16 bytes in a register, or in each half of one.
mod sixteen {
    use super::{digit, is_hyphen, place};

    /// The index that makes a shuffle write zero.
    pub const ZERO: usize = 0x80;

    /// The shuffles of two sno IDs, the first loaded from its start and the second so that it ends with the register:
    /// their bytes as eight little-endian words each. Each word has the ten bits of two characters in it.
    pub static WORDS: [[u8; 16]; 2] =
        [table!(16, |i| i / 2 + i / 8 + (i + 1) % 2), table!(16, |i| i / 2 + i / 8 + (i + 1) % 2 + 6)];

    /// The shuffle of two quad words, each with forty bits of a sno ID at its end, to the ID's ten bytes.
    pub static FORTIES: [u8; 16] = table!(16, |i| if i < 10 { i / 5 * 8 + 4 - i % 5 } else { ZERO });

    /// The text of a UUID in three pieces; the last overlaps the second.
    pub static PIECES: [Piece; 3] = [Piece::new(0), Piece::new(16), Piece::new(20)];

    pub struct Piece {
        /// Its start in the text.
        pub start: usize,
        /// For each character, the byte of the ID that it is half of.
        pub bytes: [u8; 16],
        /// For each character, 0xff if it is the upper half of its byte.
        pub upper: [u8; 16],
        /// For each character, 0xff if it is a hyphen.
        pub hyphens: [u8; 16],
        /// For each byte of the ID, the position of its two characters, if both are in the piece.
        pub pairs: [u8; 16],
    }

    impl Piece {
        const fn new(start: usize) -> Self {
            Piece {
                start,
                bytes: table!(16, |i| digit(start + i) / 2),
                upper: table!(16, |i| (1 - digit(start + i) % 2) * 0xff),
                hyphens: table!(16, |i| if is_hyphen(start + i) { 0xff } else { 0 }),
                pairs: table!(16, |i| {
                    let at = place(2 * i);
                    if at >= start && at < start + 15 { at - start } else { ZERO }
                }),
            }
        }
    }

    /// Returns the 16 bytes from `start` on.
    #[inline]
    pub fn at(bytes: &[u8], start: usize) -> &[u8; 16] {
        bytes[start..].first_chunk().expect("16 bytes more")
    }

    /// Returns room for 16 bytes from `start` on.
    #[inline]
    pub fn room_at(bytes: &mut [u8], start: usize) -> &mut [u8; 16] {
        bytes[start..].first_chunk_mut().expect("16 bytes more")
    }
}

#[cfg(avx)]
mod avx2 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::super::swar::{self, Alphabet};
    use super::sixteen::{FORTIES, PIECES, WORDS, ZERO, at, room_at};
    use super::{Kernels, blocks};

    /// `FORTIES` for the second of two IDs: its first six bytes follow the ten of the first ID, the others are at the start.
    static FORTIES_AFTER_TEN: [u8; 16] = table!(16, |i| match i {
        0..4 => FORTIES[i + 6],
        10.. => FORTIES[i - 10],
        _ => ZERO as u8,
    });

    pub static KERNELS: Kernels = Kernels { name: "avx2", base32_encode, base32_decode, hex_encode, hex_decode };

    #[target_feature(enable = "avx2")]
    fn base32_encode(ids: &[[u8; 10]], text: &mut [[u8; 16]]) -> usize {
        let take = load(&WORDS[0], &WORDS[1]);
        // A multiplication shifts each word by its own distance: the upper half of the product to the right, the lower
        // half to the left.
        let firsts = _mm256_set1_epi64x(1 << 59 | 1 << 41 | 1 << 23 | 1 << 5);
        let seconds = _mm256_set1_epi64x(1 << 56 | 1 << 38 | 1 << 20 | 1 << 2);
        blocks::<2, _, _>(ids, text, |ids, [text0, text1]| {
            let ids = ids.as_flattened();
            let words = _mm256_shuffle_epi8(load(at(ids, 0), at(ids, 4)), take);
            let values = _mm256_or_si256(
                _mm256_and_si256(upper_half(words, firsts), _mm256_set1_epi16(0x001f)),
                _mm256_and_si256(_mm256_mullo_epi16(words, seconds), _mm256_set1_epi16(0x1f00)),
            );
            store(text0, text1, write(values, swar::BASE32));
            true
        })
    }

    #[target_feature(enable = "avx2")]
    fn base32_decode(text: &[[u8; 16]], ids: &mut [[u8; 10]]) -> usize {
        let take = load(&FORTIES, &FORTIES_AFTER_TEN);
        blocks::<2, _, _>(text, ids, |[text0, text1], ids| {
            let (values, bad) = read(load(text0, text1), swar::BASE32);
            let tens = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x01_20));
            let twenties = _mm256_madd_epi16(tens, _mm256_set1_epi32(0x0001_0400));
            let forties = _mm256_or_si256(_mm256_slli_epi64(twenties, 20), _mm256_srli_epi64(twenties, 32));
            let bytes = _mm256_shuffle_epi8(forties, take);
            let (first, second) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
            let (sixteen, rest) = ids.as_flattened_mut().split_at_mut(16);
            // The first ten bytes of one, and the last six of the other; its other four are at its start.
            store_half(room_at(sixteen, 0), _mm_blend_epi16(first, second, 0b1110_0000));
            rest.copy_from_slice(&_mm_cvtsi128_si32(second).to_le_bytes());
            _mm256_testz_si256(bad, bad) == 1
        })
    }

    #[target_feature(enable = "avx2")]
    fn hex_encode(ids: &[[u8; 16]], text: &mut [[u8; 36]]) -> usize {
        blocks::<2, _, _>(ids, text, |[id0, id1], [text0, text1]| {
            let ids = load(id0, id1);
            for piece in &PIECES {
                let bytes = _mm256_shuffle_epi8(ids, twice(&piece.bytes));
                let halves = _mm256_blendv_epi8(bytes, _mm256_srli_epi16(bytes, 4), twice(&piece.upper));
                let digits = write(_mm256_and_si256(halves, all(0x0f)), swar::HEX);
                let characters = _mm256_blendv_epi8(digits, all(b'-'), twice(&piece.hyphens));
                store(room_at(text0, piece.start), room_at(text1, piece.start), characters);
            }
            true
        })
    }

    #[target_feature(enable = "avx2")]
    fn hex_decode(text: &[[u8; 36]], ids: &mut [[u8; 16]]) -> usize {
        blocks::<2, _, _>(text, ids, |[text0, text1], [id0, id1]| {
            let (mut ids, mut wrong) = (all(0), all(0));
            for piece in &PIECES {
                let characters = load(at(text0, piece.start), at(text1, piece.start));
                let (values, bad) = read(characters, swar::HEX);
                let no_hyphen = _mm256_xor_si256(characters, all(b'-'));
                wrong = _mm256_or_si256(wrong, _mm256_blendv_epi8(bad, no_hyphen, twice(&piece.hyphens)));
                // The shift works on words, and carries bits of a hyphen's meaningless value into the next byte.
                let firsts = _mm256_and_si256(_mm256_slli_epi16(values, 4), all(0xf0));
                let pairs = _mm256_or_si256(firsts, _mm256_bsrli_epi128(values, 1));
                ids = _mm256_or_si256(ids, _mm256_shuffle_epi8(pairs, twice(&piece.pairs)));
            }
            store(id0, id1, ids);
            _mm256_testz_si256(wrong, wrong) == 1
        })
    }

    /// Returns the upper halves of the products of words: `_mm256_mulhi_epu16`, of which the compiler makes eight
    /// instructions if it knows the factors.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_half(words: __m256i, factors: __m256i) -> __m256i {
        let products;
        // SAFETY: the instruction is of AVX2, and touches these registers alone.
        unsafe {
            asm!(
                "vpmulhuw {products}, {words}, {factors}",
                products = lateout(ymm_reg) products,
                words = in(ymm_reg) words,
                factors = in(ymm_reg) factors,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        products
    }

    /// Returns the characters of values.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn write(values: __m256i, alphabet: Alphabet) -> __m256i {
        let letters = _mm256_cmpgt_epi8(values, all(alphabet.digits - 1));
        let gaps = _mm256_and_si256(letters, all(alphabet.gap()));
        _mm256_add_epi8(_mm256_add_epi8(values, all(alphabet.zero)), gaps)
    }

    /// Returns the values of characters, and nonzero bytes for those outside the alphabet.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn read(text: __m256i, alphabet: Alphabet) -> (__m256i, __m256i) {
        let folded = _mm256_or_si256(text, all(alphabet.fold));
        // The comparison is of signed bytes: a byte beyond ASCII counts as a digit, and is too large for one.
        let letters = _mm256_cmpgt_epi8(folded, all(b'a' - 1));
        let pick = |digits, letter| _mm256_blendv_epi8(digits, letter, letters);
        let values = _mm256_sub_epi8(pick(text, folded), pick(all(alphabet.zero), all(alphabet.zero + alphabet.gap())));
        let most = pick(all(alphabet.digits - 1), all(alphabet.digits + alphabet.letters() - 1));
        (values, _mm256_subs_epu8(values, most))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn all(byte: u8) -> __m256i {
        _mm256_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn twice(bytes: &[u8; 16]) -> __m256i {
        load(bytes, bytes)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(low: &[u8; 16], high: &[u8; 16]) -> __m256i {
        // SAFETY: both are 16 bytes.
        unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store_half(room: &mut [u8; 16], bytes: __m128i) {
        // SAFETY: there is room for 16 bytes.
        unsafe { _mm_storeu_si128(room.as_mut_ptr().cast(), bytes) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(low: &mut [u8; 16], high: &mut [u8; 16], bytes: __m256i) {
        // SAFETY: both have room for 16 bytes.
        unsafe { _mm256_storeu2_m128i(high.as_mut_ptr().cast(), low.as_mut_ptr().cast(), bytes) }
    }
}

#[cfg(neon)]
mod neon {
    use std::arch::aarch64::*;

    use super::super::swar::{self, Alphabet};
    use super::sixteen::{FORTIES, PIECES, WORDS, at, room_at};
    use super::{Kernels, blocks};

    pub static KERNELS: Kernels = Kernels { name: "neon", base32_encode, base32_decode, hex_encode, hex_decode };

    #[target_feature(enable = "neon")]
    fn base32_encode(ids: &[[u8; 10]], text: &mut [[u8; 16]]) -> usize {
        // The shifts of four words to the left. Negative ones go to the right: 11, 9, 7 and 5.
        let firsts = vreinterpretq_s16_u64(vdupq_n_u64(0xfffb_fff9_fff7_fff5));
        let seconds = vreinterpretq_s16_u64(vdupq_n_u64(0x0008_0006_0004_0002));
        blocks::<2, _, _>(ids, text, |ids, text| {
            let ids = ids.as_flattened();
            for ((text, take), start) in text.iter_mut().zip(&WORDS).zip([0, 4]) {
                let words = vqtbl1q_u8(load(at(ids, start)), load(take));
                let words = vreinterpretq_u16_u8(words);
                let values = vorrq_u16(
                    vandq_u16(vshlq_u16(words, firsts), vdupq_n_u16(0x001f)),
                    vandq_u16(vshlq_u16(words, seconds), vdupq_n_u16(0x1f00)),
                );
                store(text, write(vreinterpretq_u8_u16(values), swar::BASE32));
            }
            true
        })
    }

    #[target_feature(enable = "neon")]
    fn base32_decode(text: &[[u8; 16]], ids: &mut [[u8; 10]]) -> usize {
        let take = load(&FORTIES);
        blocks::<1, _, _>(text, ids, |[text], [id]| {
            let (values, bad) = read(load(text), swar::BASE32);
            // Each step shifts the first half of a lane to the left, above the bits that it keeps of the second. All
            // other bits end up further left, where no step and no byte reads them.
            let fives = vreinterpretq_u16_u8(values);
            let tens = vreinterpretq_u32_u16(vsliq_n_u16::<5>(vshrq_n_u16::<8>(fives), fives));
            let twenties = vreinterpretq_u64_u32(vsliq_n_u32::<10>(vshrq_n_u32::<16>(tens), tens));
            let forties = vsliq_n_u64::<20>(vshrq_n_u64::<32>(twenties), twenties);
            let bytes = vqtbl1q_u8(vreinterpretq_u8_u64(forties), take);
            let (low, high) = (vreinterpretq_u64_u8(bytes), vreinterpretq_u16_u8(bytes));
            id[..8].copy_from_slice(&vgetq_lane_u64::<0>(low).to_le_bytes());
            id[8..].copy_from_slice(&vgetq_lane_u16::<4>(high).to_le_bytes());
            vmaxvq_u8(bad) == 0
        })
    }

    #[target_feature(enable = "neon")]
    fn hex_encode(ids: &[[u8; 16]], text: &mut [[u8; 36]]) -> usize {
        blocks::<1, _, _>(ids, text, |[id], [text]| {
            let id = load(id);
            for piece in &PIECES {
                let bytes = vqtbl1q_u8(id, load(&piece.bytes));
                let lower = vandq_u8(bytes, all(0x0f));
                let halves = vbslq_u8(load(&piece.upper), vshrq_n_u8::<4>(bytes), lower);
                let digits = write(halves, swar::HEX);
                let characters = vbslq_u8(load(&piece.hyphens), all(b'-'), digits);
                store(room_at(text, piece.start), characters);
            }
            true
        })
    }

    #[target_feature(enable = "neon")]
    fn hex_decode(text: &[[u8; 36]], ids: &mut [[u8; 16]]) -> usize {
        blocks::<1, _, _>(text, ids, |[text], [id]| {
            let (mut bytes, mut wrong) = (all(0), all(0));
            for piece in &PIECES {
                let characters = load(at(text, piece.start));
                let (values, bad) = read(characters, swar::HEX);
                let no_hyphen = veorq_u8(characters, all(b'-'));
                wrong = vorrq_u8(wrong, vbslq_u8(load(&piece.hyphens), no_hyphen, bad));
                let next = vextq_u8::<1>(values, values);
                let pairs = vsliq_n_u8::<4>(next, values);
                bytes = vorrq_u8(bytes, vqtbl1q_u8(pairs, load(&piece.pairs)));
            }
            store(id, bytes);
            vmaxvq_u8(wrong) == 0
        })
    }

    /// Returns the characters of values.
    #[inline]
    #[target_feature(enable = "neon")]
    fn write(values: uint8x16_t, alphabet: Alphabet) -> uint8x16_t {
        let letters = vcgeq_u8(values, all(alphabet.digits));
        let gaps = vandq_u8(letters, all(alphabet.gap()));
        vaddq_u8(vaddq_u8(values, all(alphabet.zero)), gaps)
    }

    /// Returns the values of characters, and nonzero bytes for those outside the alphabet.
    #[inline]
    #[target_feature(enable = "neon")]
    fn read(text: uint8x16_t, alphabet: Alphabet) -> (uint8x16_t, uint8x16_t) {
        let folded = vorrq_u8(text, all(alphabet.fold));
        let letters = vcgeq_u8(folded, all(b'a'));
        let pick = |letter, digit| vbslq_u8(letters, letter, digit);
        let least = pick(all(alphabet.zero + alphabet.gap()), all(alphabet.zero));
        let most = pick(all(alphabet.digits + alphabet.letters() - 1), all(alphabet.digits - 1));
        let values = vsubq_u8(pick(folded, text), least);
        (values, vcgtq_u8(values, most))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn all(byte: u8) -> uint8x16_t {
        vdupq_n_u8(byte)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn load(bytes: &[u8; 16]) -> uint8x16_t {
        // SAFETY: 16 bytes are there.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn store(room: &mut [u8; 16], bytes: uint8x16_t) {
        // SAFETY: there is room for 16 bytes.
        unsafe { vst1q_u8(room.as_mut_ptr(), bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Base32, Hex};
    use super::Path;

    /// A path that leaves a block is right but slow, so the tests of results do not notice it.
    #[test]
    fn every_path_converts_every_block_of_valid_text() {
        for path in Path::available().filter(|path| path.name() != "portable") {
            let ids: [[u8; 10]; 256] = std::array::from_fn(|i| [(i as u8).wrapping_mul(77); 10]);
            let mut text = ids.map(Base32::encode);
            assert_eq!(path.base32_decode(&text, &mut ids.clone()), 256, "{path:?}");
            assert_eq!(path.base32_encode(&ids, &mut text), 256, "{path:?}");

            let ids: [[u8; 16]; 256] = std::array::from_fn(|i| [i as u8; 16]);
            let mut text = ids.map(Hex::encode);
            text[128..].as_flattened_mut().make_ascii_uppercase();
            assert_eq!(path.hex_decode(&text, &mut ids.clone()), 256, "{path:?}");
            assert_eq!(path.hex_encode(&ids, &mut text), 256, "{path:?}");
        }
    }
}
