//! What is looked into of a chain of certificates.

/// Certificates that are looked at on all ways from one to an authority: 8 are on the longest. So many of one
/// name that each could have signed each make 8,000 ways; at a microsecond for each that is read, of up to 7
/// at each step, these take half a millisecond.
pub const PATH_STEPS_MAX: usize = 64;

/// Authorities of one name whose signature is looked for on a certificate that webpki does not read; each
/// takes a tenth of a millisecond.
pub const NAMESAKES_MAX: usize = 16;

/// From so many names of a server's certificate on, how many they are is said, and not which; Go's.
pub const NAMES_SAID_MAX: usize = 100;
