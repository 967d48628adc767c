"""What exists (commands, scripts) into a Deployment with locations."""
