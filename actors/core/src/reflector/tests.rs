//! The machine under scripts of happenings; each test is named after the line of the contract it proves.
