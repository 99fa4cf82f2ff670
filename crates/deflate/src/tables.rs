//! The numbers of the format: RFC 1951, section 3.2.

/// Bytes, the end, and lengths; the last two that the fixed code has beyond them are never used.
pub(crate) const LITERALS: usize = 286;
pub(crate) const DISTANCES: usize = 30;

/// The symbol that ends a block; lengths follow it.
pub(crate) const END: usize = 256;

pub(crate) const LENGTH_MAX: usize = 258;
pub(crate) const DISTANCE_MAX: usize = 32_768;

pub(crate) const LENGTH_BASE: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
pub(crate) const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

pub(crate) const DISTANCE_BASE: [u16; DISTANCES] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
pub(crate) const DISTANCE_EXTRA: [u8; DISTANCES] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];

/// In what order the lengths of the code of lengths are written.
pub(crate) const CODE_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Of a length, 3 to 258, counted from the first symbol of lengths.
#[inline(always)]
pub(crate) fn length_symbol(length: usize) -> usize {
    usize::from(LENGTH_SYMBOLS[length - 3])
}

/// Of a distance, 1 to 32,768.
#[inline(always)]
pub(crate) fn distance_symbol(distance: usize) -> usize {
    let beyond = distance - 1;
    usize::from(DISTANCE_SYMBOLS[if beyond < 256 { beyond } else { 256 + (beyond >> 7) }])
}

const LENGTH_SYMBOLS: [u8; 256] = {
    let mut symbols = [0; 256];
    let (mut length, mut symbol) = (3, 0);
    while length <= LENGTH_MAX {
        if symbol + 1 < LENGTH_BASE.len() && LENGTH_BASE[symbol + 1] as usize == length {
            symbol += 1;
        }
        symbols[length - 3] = symbol as u8;
        length += 1;
    }
    symbols
};

// Up to 256 each; from there on, where no symbol begins within 128, by 128.
const DISTANCE_SYMBOLS: [u8; 512] = {
    let mut symbols = [0; 512];
    let (mut beyond, mut symbol) = (0, 0);
    while beyond < DISTANCE_MAX {
        if symbol + 1 < DISTANCES && DISTANCE_BASE[symbol + 1] as usize == beyond + 1 {
            symbol += 1;
        }
        symbols[if beyond < 256 { beyond } else { 256 + (beyond >> 7) }] = symbol as u8;
        beyond += 1;
    }
    symbols
};
