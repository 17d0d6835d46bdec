document.querySelectorAll('.switch button').forEach(button => button.onclick = () => {
  document.querySelectorAll('.switch button, .board').forEach(x => x.classList.toggle('on', x.dataset.figure === button.dataset.figure));
});
