// On a narrow screen the list of pages is closed until it is asked for.

const list = document.querySelector(".pages details");
if (list && matchMedia("(max-width: 48rem)").matches) list.open = false;
