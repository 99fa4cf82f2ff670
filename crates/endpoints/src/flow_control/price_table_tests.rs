//! What LISTs took, beside what their prices say.
//!
//! Measured with the release build on two cores: ConfigMaps of 0.2 kB (2,000), 1 kB (200), 2 kB (2,000) and
//! 20 kB (300), which are words, each size in a namespace of its own, and 2,000 pods of 2.7 kB; all at rest.
//! The mean of two rounds of three times 5 or 30 LISTs, from `/proc/PID/task/*/schedstat`. `bench`: `prices`
//! measures them again.

use forebay_reads::Making::{self, Indented, Metadata, Protobuf, Row, Stored, Yaml};
use forebay_reads::{Estimate, FoundBy, Rendering, Weight};

use super::price::list;
use crate::limits::GZIP_BYTES_MIN;

const PLAIN: bool = false;
const GZIP: bool = true;

/// Which objects and how; what is made of them, and whether in gzip; what is looked at, what is shown, and
/// their bytes, those in deflate and those that are inflated; CPU time in microseconds.
type Case = (&'static str, Making, bool, [usize; 6], u64);

const CASES: &[Case] = &[
    ("0.2 kB plain", Stored, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 1239),
    ("0.2 kB gzip", Stored, GZIP, [2000, 835242, 2000, 835242, 359867, 359867], 912),
    ("0.2 kB proto", Protobuf, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 452),
    ("0.2 kB protogz", Protobuf, GZIP, [2000, 835242, 2000, 835242, 359867, 359867], 3838),
    ("0.2 kB table", Row, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 3474),
    ("0.2 kB tablegz", Row, GZIP, [2000, 835242, 2000, 835242, 359867, 359867], 4406),
    ("0.2 kB meta", Metadata, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 1300),
    ("0.2 kB yaml", Yaml, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 13337),
    ("0.2 kB pretty", Indented, PLAIN, [2000, 835242, 2000, 835242, 359867, 359867], 2775),
    ("0.2 kB sel4", Stored, PLAIN, [2000, 835242, 500, 210186, 90559, 359867], 1074),
    ("0.2 kB sel4gz", Stored, GZIP, [2000, 835242, 500, 210186, 90559, 359867], 2065),
    ("0.2 kB sel100", Stored, PLAIN, [2000, 835242, 20, 8434, 3633, 230315], 676),
    ("0.2 kB none", Stored, PLAIN, [2000, 835242, 0, 0, 0, 0], 47),
    ("0.2 kB sel4table", Row, PLAIN, [2000, 835242, 500, 210186, 90559, 359867], 1712),
    ("0.2 kB sel4proto", Protobuf, PLAIN, [2000, 835242, 500, 210186, 90559, 359867], 294),
    ("0.2 kB page", Stored, PLAIN, [100, 43627, 100, 43627, 18796, 18824], 93),
    ("0.2 kB pagegz", Stored, GZIP, [100, 43627, 100, 43627, 18796, 18824], 93),
    ("0.2 kB pagetable", Row, PLAIN, [100, 43627, 100, 43627, 18796, 18824], 248),
    ("0.2 kB pageproto", Protobuf, PLAIN, [100, 43627, 100, 43627, 18796, 18824], 80),
    ("2 kB plain", Stored, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 7286),
    ("2 kB gzip", Stored, GZIP, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 1790),
    ("2 kB proto", Protobuf, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 2172),
    ("2 kB protogz", Protobuf, GZIP, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 23565),
    ("2 kB table", Row, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 8998),
    ("2 kB tablegz", Row, GZIP, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 9796),
    ("2 kB meta", Metadata, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 6407),
    ("2 kB yaml", Yaml, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 55845),
    ("2 kB pretty", Indented, PLAIN, [2000, 4433849, 2000, 4433849, 1910344, 1910344], 13566),
    ("2 kB sel4", Stored, PLAIN, [2000, 4433849, 500, 1107075, 476988, 1910344], 6478),
    ("2 kB sel4gz", Stored, GZIP, [2000, 4433849, 500, 1107075, 476988, 1910344], 12046),
    ("2 kB sel100", Stored, PLAIN, [2000, 4433849, 20, 48909, 21072, 564729], 1820),
    ("2 kB none", Stored, PLAIN, [2000, 4433849, 0, 0, 0, 0], 65),
    ("2 kB sel4table", Row, PLAIN, [2000, 4433849, 500, 1107075, 476988, 1910344], 6836),
    ("2 kB sel4proto", Protobuf, PLAIN, [2000, 4433849, 500, 1107075, 476988, 1910344], 720),
    ("2 kB page", Stored, PLAIN, [100, 228896, 100, 228896, 98620, 98620], 432),
    ("2 kB pagegz", Stored, GZIP, [100, 228896, 100, 228896, 98620, 98620], 1614),
    ("2 kB pagetable", Row, PLAIN, [100, 228896, 100, 228896, 98620, 98620], 518),
    ("2 kB pageproto", Protobuf, PLAIN, [100, 228896, 100, 228896, 98620, 98620], 117),
    ("20 kB plain", Stored, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 10524),
    ("20 kB gzip", Stored, GZIP, [300, 6208723, 300, 6208723, 2675056, 2675056], 2071),
    ("20 kB proto", Protobuf, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 2297),
    ("20 kB protogz", Protobuf, GZIP, [300, 6208723, 300, 6208723, 2675056, 2675056], 32160),
    ("20 kB table", Row, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 10292),
    ("20 kB tablegz", Row, GZIP, [300, 6208723, 300, 6208723, 2675056, 2675056], 10377),
    ("20 kB meta", Metadata, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 8992),
    ("20 kB yaml", Yaml, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 69708),
    ("20 kB pretty", Indented, PLAIN, [300, 6208723, 300, 6208723, 2675056, 2675056], 17804),
    ("20 kB sel4", Stored, PLAIN, [300, 6208723, 75, 1532095, 660110, 2117736], 7564),
    ("20 kB sel4gz", Stored, GZIP, [300, 6208723, 75, 1532095, 660110, 2117736], 15123),
    ("20 kB sel100", Stored, PLAIN, [300, 6208723, 3, 74533, 32112, 84709], 286),
    ("20 kB none", Stored, PLAIN, [300, 6208723, 0, 0, 0, 0], 24),
    ("20 kB sel4table", Row, PLAIN, [300, 6208723, 75, 1532095, 660110, 2117736], 7530),
    ("20 kB sel4proto", Protobuf, PLAIN, [300, 6208723, 75, 1532095, 660110, 2117736], 638),
    ("20 kB page", Stored, PLAIN, [100, 2001744, 100, 2001744, 862460, 862460], 3578),
    ("20 kB pagegz", Stored, GZIP, [100, 2001744, 100, 2001744, 862460, 862460], 13469),
    ("20 kB pagetable", Row, PLAIN, [100, 2001744, 100, 2001744, 862460, 862460], 3315),
    ("20 kB pageproto", Protobuf, PLAIN, [100, 2001744, 100, 2001744, 862460, 862460], 742),
    ("1 kB plain", Stored, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 378),
    ("1 kB gzip", Stored, GZIP, [200, 243710, 200, 243710, 105003, 105003], 1325),
    ("1 kB proto", Protobuf, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 140),
    ("1 kB protogz", Protobuf, GZIP, [200, 243710, 200, 243710, 105003, 105003], 1266),
    ("1 kB table", Row, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 604),
    ("1 kB tablegz", Row, GZIP, [200, 243710, 200, 243710, 105003, 105003], 596),
    ("1 kB meta", Metadata, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 344),
    ("1 kB yaml", Yaml, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 3218),
    ("1 kB pretty", Indented, PLAIN, [200, 243710, 200, 243710, 105003, 105003], 810),
    ("1 kB sel4", Stored, PLAIN, [200, 243710, 50, 60368, 26009, 105003], 342),
    ("1 kB sel4gz", Stored, GZIP, [200, 243710, 50, 60368, 26009, 105003], 338),
    ("1 kB sel100", Stored, PLAIN, [200, 243710, 2, 2017, 869, 56472], 149),
    ("1 kB none", Stored, PLAIN, [200, 243710, 0, 0, 0, 0], 24),
    ("1 kB sel4table", Row, PLAIN, [200, 243710, 50, 60368, 26009, 105003], 382),
    ("1 kB sel4proto", Protobuf, PLAIN, [200, 243710, 50, 60368, 26009, 105003], 72),
    ("1 kB page", Stored, PLAIN, [100, 115877, 100, 115877, 49926, 49926], 182),
    ("1 kB pagegz", Stored, GZIP, [100, 115877, 100, 115877, 49926, 49926], 186),
    ("1 kB pagetable", Row, PLAIN, [100, 115877, 100, 115877, 49926, 49926], 280),
    ("1 kB pageproto", Protobuf, PLAIN, [100, 115877, 100, 115877, 49926, 49926], 74),
    ("pods plain", Stored, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 4010),
    ("pods gzip", Stored, GZIP, [2000, 5310046, 2000, 5310046, 838189, 838189], 594),
    ("pods proto", Protobuf, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 1488),
    ("pods protogz", Protobuf, GZIP, [2000, 5310046, 2000, 5310046, 838189, 838189], 9148),
    ("pods table", Row, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 8774),
    ("pods tablegz", Row, GZIP, [2000, 5310046, 2000, 5310046, 838189, 838189], 11860),
    ("pods meta", Metadata, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 3098),
    ("pods yaml", Yaml, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 95392),
    ("pods pretty", Indented, PLAIN, [2000, 5310046, 2000, 5310046, 838189, 838189], 19038),
    ("pods sel4", Stored, PLAIN, [2000, 5310046, 500, 1327527, 209549, 838189], 3247),
    ("pods sel4gz", Stored, GZIP, [2000, 5310046, 500, 1327527, 209549, 838189], 5218),
    ("pods sel100", Stored, PLAIN, [2000, 5310046, 20, 53141, 8388, 206896], 656),
    ("pods none", Stored, PLAIN, [2000, 5310046, 0, 0, 0, 0], 58),
    ("pods sel4table", Row, PLAIN, [2000, 5310046, 500, 1327527, 209549, 838189], 4050),
    ("pods sel4proto", Protobuf, PLAIN, [2000, 5310046, 500, 1327527, 209549, 838189], 582),
    ("pods page", Stored, PLAIN, [100, 265731, 100, 265731, 41945, 41945], 246),
    ("pods pagegz", Stored, GZIP, [100, 265731, 100, 265731, 41945, 41945], 696),
    ("pods pagetable", Row, PLAIN, [100, 265731, 100, 265731, 41945, 41945], 466),
    ("pods pageproto", Protobuf, PLAIN, [100, 265731, 100, 265731, 41945, 41945], 136),
    ("all plain", Stored, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 20570),
    ("all gzip", Stored, GZIP, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 2885),
    ("all proto", Protobuf, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 5600),
    ("all protogz", Protobuf, GZIP, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 62564),
    ("all table", Row, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 23570),
    ("all tablegz", Row, GZIP, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 25172),
    ("all meta", Metadata, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 16578),
    ("all yaml", Yaml, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 145650),
    ("all pretty", Indented, PLAIN, [4541, 11744590, 4541, 11744590, 5060210, 5060210], 38371),
    ("all sel4", Stored, PLAIN, [4541, 11744590, 1135, 2913584, 1255330, 5060210], 15243),
    ("all sel4gz", Stored, GZIP, [4541, 11744590, 1135, 2913584, 1255330, 5060210], 29282),
    ("all sel100", Stored, PLAIN, [4541, 11744590, 46, 134086, 57771, 947518], 2930),
    ("all none", Stored, PLAIN, [4541, 11744590, 0, 0, 0, 0], 99),
    ("all sel4table", Row, PLAIN, [4541, 11744590, 1135, 2913584, 1255330, 5060210], 16186),
    ("all sel4proto", Protobuf, PLAIN, [4541, 11744590, 1135, 2913584, 1255330, 5060210], 2016),
    ("all page", Stored, PLAIN, [100, 46749, 100, 46749, 20142, 20142], 90),
    ("all pagegz", Stored, GZIP, [100, 46749, 100, 46749, 20142, 20142], 94),
    ("all pagetable", Row, PLAIN, [100, 46749, 100, 46749, 20142, 20142], 204),
    ("all pageproto", Protobuf, PLAIN, [100, 46749, 100, 46749, 20142, 20142], 64),
];

#[test]
fn of_twenty_lists_nineteen_take_what_was_foreseen_or_a_fifth_more_or_less() {
    let off = CASES.iter().filter_map(|(name, making, is_compressed, of, took)| {
        let [objects, bytes, selected, selected_bytes, deflated_bytes, inflated_bytes] = *of;
        let of = Estimate { objects, bytes, selected, selected_bytes, deflated_bytes, inflated_bytes };
        let is_whole = objects == selected && !name.contains("page");
        let weight = Weight { of, found: if is_whole { FoundBy::Whole } else { FoundBy::Page }, unmade: 0 };
        let gzip_bytes_min = is_compressed.then_some(GZIP_BYTES_MIN);
        let rendering = Rendering { making: *making, gzip_bytes_min };
        let foreseen = list(weight, rendering).price.cpu.as_micros() as f64;
        let ratio = foreseen / *took as f64;
        ((ratio - 1.0).abs() > 0.2).then_some((name, ratio))
    });
    let off: Vec<_> = off.collect();
    assert!(20 * off.len() <= CASES.len(), "{} of {}: {off:?}", off.len(), CASES.len());
}
