//! Whether what was given for an execution can be run.

use super::Error;
use super::execution::{MOST_ITERATIONS, Plan};

/// The plan, complete, where it can be run.
pub(super) fn checked(plan: Plan) -> Result<Plan, Error> {
    if !(1..=i64::from(MOST_ITERATIONS)).contains(&plan.iterations) {
        let message =
            format!("Invalid iterations: {}. Expected a number between 1 and {MOST_ITERATIONS}", plan.iterations);
        return Err(Error::new(message, "10 is what an execution has that says nothing"));
    }
    Ok(plan)
}
