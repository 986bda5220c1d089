
"use strict";
// Steps through the rounds of a trace. The page contains all rounds; this script shows and hides them.

function stepThrough(trace) {
  const parts = [...trace.querySelectorAll(".trace-part")];
  const rounds = [...trace.querySelectorAll(".trace-round")];
  const words = [...trace.querySelectorAll("[data-from]")];
  const list = trace.querySelector(".trace-rounds");
  const button = (name) => trace.querySelector(`[data-go="${name}"]`);
  const interval = 1600; // ms a step is shown for
  const last = parts.length - 1;
  let step = 0;
  let timer = null;

  const show = (wanted) => {
    step = Math.min(Math.max(wanted, 0), last);
    const round = parts[step].closest(".trace-round");
    for (const one of rounds) one.hidden = one !== round;
    parts.forEach((part, place) => {
      part.hidden = place > step;
      if (place === step) part.setAttribute("aria-current", "step");
      else part.removeAttribute("aria-current");
    });
    for (const word of words) word.hidden = Number(word.dataset.from) > step;
    trace.querySelector("[data-step]").textContent = step + 1;
    button("previous").setAttribute("aria-disabled", step === 0);
    button("next").setAttribute("aria-disabled", step === last);
  };

  const play = (playing) => {
    clearInterval(timer);
    timer = playing ? setInterval(() => (step === last ? play(false) : show(step + 1)), interval) : null;
    for (const one of button("play").querySelectorAll("[data-when]")) {
      one.hidden = one.dataset.when !== (playing ? "playing" : "still");
    }
    // Screen readers announce steps that the reader takes, not those that play by themselves.
    list.setAttribute("aria-live", playing ? "off" : "polite");
  };

  const go = (wanted) => {
    play(false);
    show(wanted);
  };

  button("previous").addEventListener("click", () => go(step - 1));
  button("next").addEventListener("click", () => go(step + 1));
  button("play").addEventListener("click", () => {
    if (timer === null && step === last) show(0);
    play(timer === null);
  });
  trace.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const wanted = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: last }[event.key];
    if (wanted === undefined) return;
    event.preventDefault();
    go(wanted);
  });

  trace.querySelector("[data-steps]").textContent = parts.length;
  trace.querySelector(".trace-controls").hidden = false;
  trace.classList.add("trace-stepping");
  go(0);
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".trace").forEach(stepThrough);
});
