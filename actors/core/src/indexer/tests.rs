//! The store: scenarios of the contract, and properties against naive models.
