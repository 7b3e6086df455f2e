//! What a browser calls: room for a question, the answer, and where it is.
//!
//! There is one thread, so nobody else has the numbers between two calls.
#![allow(
    unsafe_code,
    unreachable_pub,
    reason = "names that a browser can find are `unsafe` attributes"
)]

use std::sync::{Mutex, PoisonError};

static QUESTION: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<f64>> = Mutex::new(Vec::new());

/// Where so many numbers of a question go.
// SAFETY: no other crate of the module has a function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn question(numbers: usize) -> *mut f64 {
    let mut question = QUESTION.lock().unwrap_or_else(PoisonError::into_inner);
    question.clear();
    question.resize(numbers.min(1 << 16), 0.0);
    question.as_mut_ptr()
}

/// Answers it. Returns how many numbers the answer has.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    let question = QUESTION.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    *answer = crate::answer(&question);
    answer.len()
}

/// Where the answer is, until the next one.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const f64 {
    let answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    answer.as_ptr()
}
