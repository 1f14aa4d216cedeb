"""What the helpers assert is told in full, too."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.observe.proof", "tests.observe.samples")
