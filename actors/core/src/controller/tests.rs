//! The decisions of a controller, against naive models.
