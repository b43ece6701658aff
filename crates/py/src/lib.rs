//! durasim py.
