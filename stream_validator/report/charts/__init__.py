"""Charts as inline SVG, made without any library: plain shapes whose colours come from the page's style sheet."""
