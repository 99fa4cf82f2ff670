//! Prefix codes: few bits for what comes often.
//!
//! In: how often each symbol comes. Out: a code in the canonical order of RFC 1951, 3.2.2, of at most so many
//! bits a symbol, and the form in which a block says its codes. Never: a code that leaves bits without a
//! meaning, which some readers refuse.

use crate::bits::Bits;
use crate::tables::{CODE_ORDER, DISTANCES, LITERALS};

/// Symbols of the code in which lengths are written: a length, or a run.
const LENGTHS: usize = CODE_ORDER.len();
/// The length before once more, 3 to 6 times; none 3 to 10 times; none 11 to 138 times.
const REPEATED: u8 = 16;
const ABSENT: u8 = 17;
const LONG_ABSENT: u8 = 18;

/// A code of `N` symbols.
pub(crate) struct Code<const N: usize>([Symbol; N]);

#[derive(Clone, Copy, Default)]
struct Symbol {
    // In the order in which they are written.
    bits: u16,
    length: u8,
}

impl<const N: usize> Code<N> {
    /// A code for symbols that come so often, none of them longer than `limit` bits: the shortest, but for
    /// what the limit costs.
    pub(crate) fn of(counts: &[u32; N], limit: usize) -> Code<N> {
        let lengths = lengths(counts, limit);
        let mut next = [0u16; 16];
        for &length in lengths.iter().filter(|length| **length > 0) {
            next[usize::from(length)] += 1;
        }
        let mut first = 0;
        for count in &mut next {
            (first, *count) = ((first + *count) << 1, first);
        }
        Code(lengths.map(|length| {
            let Some(unused) = 16u8.checked_sub(length).filter(|unused| *unused < 16) else {
                return Symbol::default();
            };
            let own = &mut next[usize::from(length)];
            *own += 1;
            Symbol { bits: (*own - 1).reverse_bits() >> unused, length }
        }))
    }

    #[inline(always)]
    pub(crate) fn of_symbol(&self, symbol: usize) -> (u64, u32) {
        let Symbol { bits, length } = self.0[symbol];
        (u64::from(bits), u32::from(length))
    }

    /// The lengths up to the last symbol that has any; of `least` symbols at least.
    pub(crate) fn lengths(&self, least: usize) -> impl Iterator<Item = u8> {
        let used = self.0.iter().rposition(|symbol| symbol.length > 0).map_or(0, |last| last + 1);
        self.0[..used.max(least)].iter().map(|symbol| symbol.length)
    }

    /// Bits of what was counted.
    pub(crate) fn bits(&self, counts: &[u32; N]) -> usize {
        counts.iter().zip(&self.0).map(|(&count, symbol)| count as usize * usize::from(symbol.length)).sum()
    }
}

/// How a block says the lengths of its two codes: as runs, in a code of their own.
pub(crate) struct Lengths {
    literals: usize,
    distances: usize,
    // A symbol and what its extra bits say.
    runs: Vec<(u8, u8)>,
    counts: [u32; LENGTHS],
    code: Code<LENGTHS>,
}

impl Lengths {
    pub(crate) fn of(literals: impl Iterator<Item = u8>, distances: impl Iterator<Item = u8>) -> Lengths {
        let mut all = Vec::with_capacity(LITERALS + DISTANCES);
        all.extend(literals);
        let of_literals = all.len();
        all.extend(distances);
        let mut runs = Vec::with_capacity(all.len());
        // A run goes across from one code to the other.
        for run in all.chunk_by(|one, next| one == next) {
            push_run(run[0], run.len(), &mut runs);
        }
        let mut counts = [0; LENGTHS];
        for &(symbol, _) in &runs {
            counts[usize::from(symbol)] += 1;
        }
        let code = Code::of(&counts, 7);
        Lengths { literals: of_literals, distances: all.len() - of_literals, runs, counts, code }
    }

    /// How many lengths of the code of lengths are written; four at least.
    fn written(&self) -> usize {
        CODE_ORDER
            .iter()
            .rposition(|&symbol| self.code.0[symbol].length > 0)
            .map_or(0, |last| last + 1)
            .max(4)
    }

    pub(crate) fn bits(&self) -> usize {
        let extra: u32 = self.runs.iter().map(|&(symbol, _)| extra_bits(symbol)).sum();
        5 + 5 + 4 + 3 * self.written() + self.code.bits(&self.counts) + extra as usize
    }

    pub(crate) fn write(&self, bits: &mut Bits) {
        bits.put(self.literals as u64 - 257, 5);
        bits.put(self.distances as u64 - 1, 5);
        bits.put(self.written() as u64 - 4, 4);
        for &symbol in &CODE_ORDER[..self.written()] {
            bits.put(u64::from(self.code.0[symbol].length), 3);
        }
        for &(symbol, extra) in &self.runs {
            let (code, len) = self.code.of_symbol(usize::from(symbol));
            bits.add(code, len);
            bits.put(u64::from(extra), extra_bits(symbol));
        }
    }
}

fn extra_bits(symbol: u8) -> u32 {
    match symbol {
        REPEATED => 2,
        ABSENT => 3,
        LONG_ABSENT => 7,
        _ => 0,
    }
}

fn push_run(length: u8, mut count: usize, runs: &mut Vec<(u8, u8)>) {
    let (symbol, least, most) = match length {
        0 if count > 10 => (LONG_ABSENT, 11, 138),
        0 => (ABSENT, 3, 10),
        _ => {
            runs.push((length, 0));
            count -= 1;
            (REPEATED, 3, 6)
        }
    };
    while count >= least {
        let part = count.min(most);
        runs.push((symbol, (part - least) as u8));
        count -= part;
    }
    runs.extend(std::iter::repeat_n((length, 0), count));
}

/// The lengths of that code, as Huffman's algorithm finds them with two queues; one that comes out longer is
/// shortened at the cost of another that is shorter than the limit. Two symbols have a code at least.
fn lengths<const N: usize>(counts: &[u32; N], limit: usize) -> [u8; N] {
    // What comes least first.
    let mut leaves: Vec<(u32, u16)> = Vec::with_capacity(N);
    leaves.extend(
        counts.iter().zip(0..).filter(|(count, _)| **count > 0).map(|(&count, symbol)| (count, symbol)),
    );
    for symbol in 0..2 {
        if leaves.len() < 2 && counts[usize::from(symbol)] == 0 {
            leaves.push((0, symbol));
        }
    }
    leaves.sort_unstable();
    // Of each node, leaves first, then those that join two: how often it comes, then whose it is, then how
    // deep it lies.
    let mut nodes: Vec<u32> = Vec::with_capacity(2 * leaves.len());
    nodes.extend(leaves.iter().map(|(count, _)| count));
    let mut parents = vec![0; 2 * leaves.len() - 1];
    let (mut leaf, mut joined) = (0, leaves.len());
    for parent in leaves.len()..2 * leaves.len() - 1 {
        let mut least = || {
            let is_leaf = leaf < leaves.len() && nodes.get(joined).is_none_or(|count| nodes[leaf] <= *count);
            let next = if is_leaf { &mut leaf } else { &mut joined };
            *next += 1;
            let node = *next - 1;
            parents[node] = parent;
            nodes[node]
        };
        let count = least() + least();
        nodes.push(count);
    }
    let depths = &mut nodes;
    let root = depths.len() - 1;
    depths[root] = 0;
    // How many codes have each length.
    let mut of_length = [0u32; 16];
    for node in (0..root).rev() {
        depths[node] = depths[parents[node]] + 1;
        if node < leaves.len() {
            of_length[(depths[node] as usize).min(limit)] += 1;
        }
    }
    shorten(&mut of_length[..=limit]);
    let mut lengths = [0; N];
    let longest_first =
        (1..=limit).rev().flat_map(|length| (0..of_length[length]).map(move |_| length as u8));
    for (&(_, symbol), length) in leaves.iter().zip(longest_first) {
        lengths[usize::from(symbol)] = length;
    }
    lengths
}

/// Makes of so many codes of each length a code in which none is another's beginning.
fn shorten(of_length: &mut [u32]) {
    let limit = of_length.len() - 1;
    // In parts of the longest code.
    let mut taken: u32 = (1..=limit).map(|length| of_length[length] << (limit - length)).sum();
    while taken > 1 << limit {
        // The longest that can become longer makes room for one of those at the limit beside itself.
        let length =
            (1..limit).rev().find(|&length| of_length[length] > 0).expect("fewer symbols than codes");
        of_length[length] -= 1;
        of_length[length + 1] += 2;
        of_length[limit] -= 1;
        taken -= 1;
    }
}
