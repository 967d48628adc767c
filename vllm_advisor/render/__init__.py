"""From a plan to artifacts; templates never compute."""
