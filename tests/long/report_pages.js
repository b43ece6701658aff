// Checks of a page of a report, which tests/long/test_report_pages.py calls in a browser.

// What is wrong in the drawings of a page: marks without extent, outside of their drawing, or below a legend, and labels
// of one axis that overlap.
window.drawingFaults = () => {
  const faults = [];
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  document.querySelectorAll("figure svg").forEach((svg, number) => {
    const whole = svg.getBoundingClientRect();
    const legends = [...svg.querySelectorAll("g.role-legend")].map(of => of.getBoundingClientRect());
    for (const mark of svg.querySelectorAll('[role="graphics-symbol"]')) {
      const kind = mark.getAttribute("aria-roledescription");
      if (!["bar", "point", "line mark", "rule mark", "rect"].includes(kind)) continue;
      const at = mark.getBoundingClientRect();
      const name = `figure ${number}: ${kind} ${mark.getAttribute("aria-label")}`;
      if (/NaN|Infinity|undefined/.test(mark.outerHTML)) faults.push(`${name} has no place`);
      if (!(at.width > 0 || at.height > 0)) faults.push(`${name} has no extent`);
      if (at.left < whole.left - 2 || at.right > whole.right + 2 || at.top < whole.top - 2 || at.bottom > whole.bottom + 2)
        faults.push(`${name} is outside`);
      if (legends.some(legend => meet(legend, at))) faults.push(`${name} is below a legend`);
    }
    for (const axis of svg.querySelectorAll("g.role-axis, g.role-legend")) {
      const labels = [...axis.querySelectorAll("text")].filter(of => of.textContent && of.getAttribute("opacity") !== "0");
      labels.forEach((one, at) => labels.slice(at + 1).forEach(other => {
        const [a, b] = [one.getCTM(), other.getCTM()];
        const size = parseFloat(getComputedStyle(one).fontSize);
        if (Math.abs(a.b) > 0.01 && Math.abs(b.b) > 0.01 && Math.abs(a.b - b.b) < 0.01) {
          // Turned labels are beside each other: the distance of their lines counts, not that of their boxes.
          const scale = Math.hypot(a.a, a.b);
          const distance = Math.abs((b.e - a.e) * a.b - (b.f - a.f) * a.a) / scale / scale;
          if (distance < 0.9 * size) faults.push(`figure ${number}: ${one.textContent} on ${other.textContent}`);
        } else if (meet(one.getBoundingClientRect(), other.getBoundingClientRect())) {
          faults.push(`figure ${number}: ${one.textContent} on ${other.textContent}`);
        }
      }));
    }
  });
  return faults;
};

// The texts of a page with too little contrast to their background, by their elements.
window.faintTexts = least => {
  const rgb = text => text.match(/[\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = rgb(colour).slice(0, 3).map(of => of / 255).map(of => of <= 0.04045 ? of / 12.92 : ((of + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const below = of => {
    for (let at = of; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((rgb(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = new Set();
  for (const of of document.querySelectorAll("body *:not(svg *)")) {
    if (![...of.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(of).color), light(below(of))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least) found.add(`${of.tagName}.${of.className}: ${contrast.toFixed(1)}`);
  }
  return [...found];
};

// The number of bars and points of each chart, legends left out.
window.markCounts = () => [...document.querySelectorAll("figure svg")].map(svg => {
  const kinds = {};
  for (const mark of svg.querySelectorAll('g.mark-symbol [aria-roledescription="point"], [aria-roledescription="bar"]')) {
    const kind = mark.getAttribute("aria-roledescription");
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
});
