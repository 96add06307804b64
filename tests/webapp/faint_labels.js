() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/^(transparent|rgba\(.*, 0\))$/.test(colour)) return colour;
    }
    return "white";
  };
  return [...document.querySelectorAll("svg :is(.role-axis, .role-legend) text")]
    .map((label) => {
      const lights = [luminance(getComputedStyle(label).fill), luminance(behind(label))];
      return [label.textContent, (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05)];
    })
    .filter(([text, contrast]) => text && contrast < 4.5);
};
