"""What both modes share: activity and cotangents."""
