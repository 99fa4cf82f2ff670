//! How small a file of objects becomes, and how fast, beside zlib-rs (as flate2): blocks of 64 objects or 64
//! KB, as the cache makes them. `kubectl get pods -A -o json | jq -c '.items[]' > FILE`, then
//! `cargo run --release -p forebay-deflate --example speed FILE`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads a file and the clock and prints"
)]

use std::time::{Duration, Instant};

use flate2::{Compress, Compression, FlushCompress};
use forebay_deflate::Deflate;
use libdeflater::Decompressor;

const ROUNDS: usize = 10;

fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read(&file).expect("a file of objects, one a line");
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let blocks = blocks(&lines);
        println!("{file}: {} objects, {} blocks", lines.len(), blocks.len());
        for level in [1, 4, 6] {
            let mut zlib = Compress::new(Compression::new(level), false);
            report(&format!("zlib-rs, level {level}"), &blocks, |block, into| {
                zlib.reset();
                zlib.compress(block, into, FlushCompress::Sync).expect("in memory");
                zlib.total_out() as usize
            });
        }
        let mut ours = Deflate::new();
        report("ours", &blocks, |block, into| {
            let deflated = ours.deflate(block, into.len()).expect("there is room");
            into[..deflated.len()].copy_from_slice(deflated);
            deflated.len()
        });
    }
}

fn blocks(lines: &[&[u8]]) -> Vec<Vec<u8>> {
    let (mut blocks, mut count) = (vec![Vec::new()], 0);
    for line in lines {
        let mut block: &mut Vec<u8> = blocks.last_mut().expect("one at least");
        if count == 64 || block.len() >= 64 << 10 {
            blocks.push(Vec::new());
            (block, count) = (blocks.last_mut().expect("it was pushed"), 0);
        }
        if count > 0 {
            block.push(b',');
        }
        block.extend_from_slice(line);
        count += 1;
    }
    blocks
}

/// The best of some rounds.
fn report(name: &str, blocks: &[Vec<u8>], mut deflate: impl FnMut(&[u8], &mut [u8]) -> usize) {
    let plain: usize = blocks.iter().map(Vec::len).sum();
    let mut into = vec![0; 2 * blocks.iter().map(Vec::len).max().unwrap_or(0) + 1024];
    let mut whole: Vec<Vec<u8>> = Vec::new();
    let (mut best, mut best_back) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        whole.clear();
        let start = Instant::now();
        for block in blocks {
            let len = deflate(block, &mut into);
            whole.push([&into[..len], &[1, 0, 0, 0xff, 0xff]].concat());
        }
        best = best.min(start.elapsed());
        let mut reader = Decompressor::new();
        let start = Instant::now();
        for (block, whole) in blocks.iter().zip(&whole) {
            let read = reader.deflate_decompress(whole, &mut into).expect("deflate");
            assert_eq!(read, block.len());
        }
        best_back = best_back.min(start.elapsed());
    }
    let small: usize = whole.iter().map(Vec::len).sum();
    let speed = |time: Duration| plain as f64 / time.as_secs_f64() / 1e6;
    let (ratio, there, back) = (plain as f64 / small as f64, speed(best), speed(best_back));
    println!("  {name:17} {ratio:5.2} times smaller, {there:5.0} MB/s, inflated {back:5.0} MB/s");
}
