//! The vectors that the original implementations wrote, in `spec/vectors`.

use serde_json::Value;

pub fn vectors(name: &str) -> Value {
    let path = format!("{}/../../spec/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn from_hex(digits: &Value) -> Vec<u8> {
    let pairs = digits.as_str().unwrap().as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
